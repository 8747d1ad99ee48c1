# Device code: how a row of the catalog and a kernel file become an image that a GPU runs.
#
#   rung_kernel(<stem> <source.cu> <arch> [FLAG...])   declares one kernel file: once for each row, and for the lab's kernels
#   rung_device_modules()                              after the last of them: the modules, librung_sm_75.so, _sm_80.so and _sm_90a.so
#
# A kernel file is compiled by nvcc once for each chip: device/sm_90a/<stem>.cubin (rewritten by a tool where the stem asks for
# it, see below) and device/sm_80/<stem>.fatbin (machine code and PTX for later chips; rows of architecture 90 have none). What
# ptxas said stands in <stem>.ptxas beside it. device/sm_75 has the rows of architecture 75: rungs without asynchronous copies. A module is the images of all kernel files, each as the symbol
# rung_image_<stem>; the library opens the module of the chip that it finds (src/cuda/driver/images.c). The lens compiles the
# same files with the host compiler when they are asked for (src/lens/objects.c).
#
# RUNG_CUDA_ARCHS says which modules are built and installed by default. Every module is a target, whatever it says.
set(RUNG_CUDA_ARCHS "native" CACHE STRING
  "GPUs to build device code for: native (those of this machine; none without a GPU), all, or a list such as 80;90a")

set(RUNG_HAVE_NVCC OFF)
if(NOT RUNG_WITH_CUDA STREQUAL "OFF")
  file(GLOB pypi_toolkits ${PROJECT_SOURCE_DIR}/.cuda/lib/python*/site-packages/nvidia/cu13)
  find_program(RUNG_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda ${pypi_toolkits} PATH_SUFFIXES bin)
  if(RUNG_NVCC)
    get_filename_component(nvcc_real ${RUNG_NVCC} REALPATH)
    get_filename_component(nvcc_bin ${nvcc_real} DIRECTORY)
    get_filename_component(RUNG_CUDA_ROOT ${nvcc_bin} DIRECTORY)
    find_program(RUNG_FATBINARY fatbinary HINTS ${nvcc_bin} /usr/local/cuda/bin)
  endif()
  if(RUNG_NVCC AND RUNG_FATBINARY)
    set(RUNG_HAVE_NVCC ON)
  elseif(RUNG_WITH_CUDA STREQUAL "ON")
    message(FATAL_ERROR "RUNG_WITH_CUDA is ON but no nvcc was found; ./dev setup --cuda installs one")
  else()
    message(STATUS "Device code: left out, no nvcc found (./dev setup --cuda installs one); everything else is built")
  endif()
endif()

# Sets `modules` to those for this machine's GPUs.
function(rung_native_modules modules)
  set(found)
  find_program(nvidia_smi nvidia-smi NO_CACHE)
  if(nvidia_smi)
    execute_process(COMMAND ${nvidia_smi} --query-gpu=compute_cap --format=csv,noheader OUTPUT_VARIABLE text RESULT_VARIABLE failed
      ERROR_QUIET)
    string(REGEX MATCHALL "[0-9]+[.][0-9]" chips "${text}")
    if(NOT failed)
      foreach(chip IN LISTS chips)
        string(REPLACE "." "" chip ${chip})
        rung_module_of(${chip} module)
        list(APPEND found ${module})
      endforeach()
    endif()
  endif()
  set(${modules} ${found} PARENT_SCOPE)
endfunction()

# Hopper's machine code runs on Hopper only, and Turing's module has only the rungs of architecture 75; the third has machine
# code for 8.x and PTX for later chips.
function(rung_module_of chip module)
  if(chip MATCHES "^90a?(-real)?$")
    set(${module} sm_90a PARENT_SCOPE)
  elseif(chip MATCHES "^75(-real)?$")
    set(${module} sm_75 PARENT_SCOPE)
  elseif(chip MATCHES "^(8[0-9]|1[0-9][0-9])(-real)?$")
    set(${module} sm_80 PARENT_SCOPE)
  else()
    message(FATAL_ERROR "RUNG_CUDA_ARCHS: '${chip}' is not native, all, 75, 80 to 89, 90a or 100 and later")
  endif()
endfunction()

set(RUNG_MODULES) # the modules that are built by default
if(RUNG_HAVE_NVCC)
  foreach(entry IN LISTS RUNG_CUDA_ARCHS)
    if(entry STREQUAL "all")
      list(APPEND RUNG_MODULES sm_80 sm_90a)
    elseif(entry STREQUAL "native")
      rung_native_modules(native)
      list(APPEND RUNG_MODULES ${native})
    else()
      rung_module_of(${entry} module)
      list(APPEND RUNG_MODULES ${module})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES RUNG_MODULES)
  if(RUNG_MODULES)
    message(STATUS "Device code: ${RUNG_MODULES} (${RUNG_NVCC})")
  else()
    message(STATUS "Device code: none by default, this machine has no GPU (RUNG_CUDA_ARCHS=all builds it)")
  endif()
endif()

include(${PROJECT_SOURCE_DIR}/cmake/sass.cmake)

set(RUNG_NVCC_FLAGS -O3 --Werror all-warnings -Xptxas -v -I${PROJECT_SOURCE_DIR}/src/cuda -I${PROJECT_SOURCE_DIR}/src
  -I${PROJECT_SOURCE_DIR}/src/cuda/api -I${PROJECT_SOURCE_DIR}/include)

# rung_kernel(<stem> <source> <arch> [POST <verb>] [<flag> ...])   declares a kernel file, what the compiler is told, and which verb
# of tools/sass works on the compiled code, where that needs to know no sizes (rung_post, for the others).
function(rung_kernel stem source arch)
  cmake_parse_arguments(PARSE_ARGV 3 kernel "" POST "")
  set_property(GLOBAL APPEND PROPERTY RUNG_KERNEL_STEMS ${stem})
  set_property(GLOBAL PROPERTY RUNG_KERNEL_${stem} ${source} ${arch} ${kernel_UNPARSED_ARGUMENTS})
  if(kernel_POST)
    rung_post(${stem} ${kernel_POST} "" none none)
  endif()
endfunction()

# Compiles one kernel file for one chip: <folder>/<stem>.fatbin, the image, and <stem>.ptxas. Hopper's images are not compressed:
# the driver uses them where they lie, and a kernel's first launch takes a third of the time.
function(rung_image stem source folder)
  get_property(nvcc_only GLOBAL PROPERTY RUNG_NVCC_ONLY_${stem}) # what the lens's compiler is not told
  set(flags ${ARGN} ${nvcc_only})
  set(base ${folder}/${stem})
  if(folder MATCHES "sm_90a$")
    rung_sass_step(${stem} ${base}.cubin post tool)
    set(compiled ${base}.cubin)
    set(form -cubin -gencode arch=compute_90a,code=sm_90a)
    set(pack COMMAND ${RUNG_FATBINARY} --64 --create=${base}.fatbin --image3=kind=elf,sm=90a,file=${base}.cubin)
    set(by_products ${base}.cubin)
  else()
    set(post)
    set(tool)
    set(compiled ${base}.fatbin)
    string(REGEX MATCH "[0-9]+$" chip ${folder})
    set(form -fatbin -gencode arch=compute_${chip},code=sm_${chip}
      -gencode arch=compute_${chip},code=compute_${chip})
    set(pack)
    set(by_products)
  endif()
  add_custom_command(OUTPUT ${base}.fatbin ${base}.ptxas ${by_products}
    COMMAND ${CMAKE_COMMAND} -DLOG=${base}.ptxas -DOUT=${compiled} -P ${PROJECT_SOURCE_DIR}/cmake/run_nvcc.cmake --
      ${RUNG_NVCC} ${form} ${RUNG_NVCC_FLAGS} ${flags} -MD -MF ${base}.d -MT ${base}.fatbin -o ${compiled} ${source}
    ${post} ${pack}
    DEPENDS ${source} ${PROJECT_SOURCE_DIR}/cmake/run_nvcc.cmake ${tool} DEPFILE ${base}.d
    COMMENT "Compiling ${stem} for ${folder}" COMMAND_EXPAND_LISTS VERBATIM)
endfunction()

# Builds the module of one chip. It is assembled from the images, with ptxas's table of registers and memory as rung_resources.
function(rung_device_module module stems)
  set(folder ${PROJECT_BINARY_DIR}/device/${module})
  file(MAKE_DIRECTORY ${folder})
  set(text "        .section .rodata\n")
  set(images)
  set(logs)
  foreach(stem IN LISTS stems)
    list(APPEND images ${folder}/${stem}.fatbin)
    list(APPEND logs ${folder}/${stem}.ptxas)
    string(APPEND text "        .balign 128\n        .globl rung_image_${stem}\nrung_image_${stem}:\n"
      "        .incbin \"${folder}/${stem}.fatbin\"\n")
  endforeach()
  string(APPEND text "        .globl rung_resources\nrung_resources:\n        .incbin \"${folder}/resources.txt\"\n"
    "        .byte 0\n        .section .note.GNU-stack,\"\",%progbits\n")
  file(CONFIGURE OUTPUT ${folder}/images.S CONTENT "${text}" @ONLY)
  add_custom_command(OUTPUT ${folder}/resources.txt
    COMMAND ${PROJECT_SOURCE_DIR}/cmake/resources.sh ${logs} > ${folder}/resources.txt
    DEPENDS ${logs} ${PROJECT_SOURCE_DIR}/cmake/resources.sh VERBATIM COMMENT "Collecting what ptxas used for ${module}")
  set_source_files_properties(${folder}/images.S PROPERTIES OBJECT_DEPENDS "${images};${folder}/resources.txt")
  add_library(rung_${module} MODULE EXCLUDE_FROM_ALL ${folder}/images.S)
  set_target_properties(rung_${module} PROPERTIES LINKER_LANGUAGE C LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
  if(module IN_LIST RUNG_MODULES)
    set_target_properties(rung_${module} PROPERTIES EXCLUDE_FROM_ALL OFF)
    install(TARGETS rung_${module} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
  endif()
endfunction()

function(rung_device_modules)
  get_property(stems GLOBAL PROPERTY RUNG_KERNEL_STEMS)
  set(sm_75)
  set(sm_80)
  set(sm_90a)
  foreach(stem IN LISTS stems)
    get_property(kernel GLOBAL PROPERTY RUNG_KERNEL_${stem})
    list(POP_FRONT kernel source arch)
    list(APPEND sm_90a ${stem})
    rung_image(${stem} ${source} ${PROJECT_BINARY_DIR}/device/sm_90a ${kernel})
    if(arch LESS 90)
      list(APPEND sm_80 ${stem})
      rung_image(${stem} ${source} ${PROJECT_BINARY_DIR}/device/sm_80 ${kernel})
    endif()
    if(arch LESS 80)
      list(APPEND sm_75 ${stem})
      rung_image(${stem} ${source} ${PROJECT_BINARY_DIR}/device/sm_75 ${kernel})
    endif()
  endforeach()
  rung_device_module(sm_75 "${sm_75}")
  rung_device_module(sm_80 "${sm_80}")
  rung_device_module(sm_90a "${sm_90a}")
endfunction()
