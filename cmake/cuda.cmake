# nvcc, if there is one, and how a device-only .cu becomes an embedded fatbin. Kernels that need Hopper (architecture 90)
# are built for sm_90a only; the others for sm_80 and sm_90a, with PTX for later chips.
set(RUNG_HAVE_CUDA OFF)
if(NOT RUNG_WITH_CUDA STREQUAL "OFF")
  file(GLOB pypi_toolkits ${CMAKE_SOURCE_DIR}/.cuda/lib/python*/site-packages/nvidia/cu13)
  find_program(RUNG_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda ${pypi_toolkits} PATH_SUFFIXES bin)
  if(RUNG_NVCC)
    get_filename_component(nvcc_real ${RUNG_NVCC} REALPATH)
    get_filename_component(nvcc_bin ${nvcc_real} DIRECTORY)
    get_filename_component(RUNG_CUDA_ROOT ${nvcc_bin} DIRECTORY)
    find_path(RUNG_CUDA_INCLUDE cuda.h HINTS ${RUNG_CUDA_ROOT}/include ${RUNG_CUDA_ROOT}/targets/x86_64-linux/include)
  endif()
  if(RUNG_NVCC AND RUNG_CUDA_INCLUDE)
    set(RUNG_HAVE_CUDA ON)
    message(STATUS "CUDA backend: on (${RUNG_NVCC})")
  elseif(RUNG_WITH_CUDA STREQUAL "ON")
    message(FATAL_ERROR "RUNG_WITH_CUDA is ON but no nvcc with cuda.h was found; ./dev setup --cuda installs one")
  else()
    message(STATUS "CUDA backend: left out, no nvcc found (./dev setup --cuda installs one); everything else is built")
  endif()
endif()

# The main loop of the large FP32 kernels is written anew after compiling (tools/ffma_loop.c), the order of FFMAs in others
# put right (tools/ffma_order.c): checked with the compiler named here, left out with others and when the tools could not
# run on this machine.
set(RUNG_LOOP_KERNELS "^sm90_tma(k|pair|shift|slice)?_f32_")
set(RUNG_ORDERED_KERNELS "^sm90_(tmawarp|lonewarp|lonecopy|lonefour|crowd)_f32_")
set(RUNG_ORDER_FFMA OFF)
if(RUNG_HAVE_CUDA AND NOT CMAKE_CROSSCOMPILING)
  execute_process(COMMAND ${RUNG_NVCC} --version OUTPUT_VARIABLE nvcc_version)
  if(nvcc_version MATCHES "release 13\\.0")
    set(RUNG_ORDER_FFMA ON)
    add_executable(ffma_order tools/ffma_order.c)
    add_executable(ffma_loop tools/ffma_loop.c)
  endif()
endif()

set(RUNG_NVCC_FLAGS -O3 --Werror all-warnings -Xptxas -v -I${CMAKE_SOURCE_DIR}/src/cuda -I${CMAKE_SOURCE_DIR}/src
  -I${CMAKE_SOURCE_DIR}/include)

# rung_fatbin(<source.cu> <arch> <objects>): adds to <objects> the assembly source that embeds the fatbin as rung_fatbin_<stem>;
# registers, spills and shared memory go to <stem>.ptxas beside it.
function(rung_fatbin source arch sources)
  get_filename_component(stem ${source} NAME_WE)
  set(base ${CMAKE_BINARY_DIR}/fatbin/${stem})
  if(arch GREATER_EQUAL 90)
    set(targets -gencode arch=compute_90a,code=sm_90a)
  else()
    set(targets -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90a,code=sm_90a
      -gencode arch=compute_80,code=compute_80)
  endif()
  set(log ${base}.ptxas)
  set(form -fatbin)
  set(order)
  set(order_tool)
  if(RUNG_ORDER_FFMA AND stem MATCHES "${RUNG_ORDERED_KERNELS}")
    set(form -cubin)
    set(order COMMAND ffma_order ${base}.fatbin)
    set(order_tool ffma_order)
  elseif(RUNG_ORDER_FFMA AND stem MATCHES "${RUNG_LOOP_KERNELS}")
    set(form -cubin)
    set(order COMMAND ffma_loop $<$<BOOL:${RUNG_WERROR}>:--strict> ${base}.fatbin)
    set(order_tool ffma_loop)
  endif()
  add_custom_command(OUTPUT ${base}.fatbin ${log}
    COMMAND ${CMAKE_COMMAND} -DLOG=${log} -DOUT=${base}.fatbin -P ${CMAKE_SOURCE_DIR}/cmake/run_nvcc.cmake --
      ${RUNG_NVCC} ${form} ${RUNG_NVCC_FLAGS} ${targets} -MD -MF ${base}.d -MT ${base}.fatbin -o ${base}.fatbin ${source}
    ${order}
    DEPENDS ${source} ${CMAKE_SOURCE_DIR}/cmake/run_nvcc.cmake ${order_tool} DEPFILE ${base}.d
    COMMENT "Compiling ${stem}.cu" COMMAND_EXPAND_LISTS VERBATIM)
  file(CONFIGURE OUTPUT ${base}.S CONTENT [[
        .section .rodata
        .balign 128
        .asciz "rung-kernel:@stem@" /* for whoever is given the image alone: the lens */
        .balign 128
        .globl rung_fatbin_@stem@
        .hidden rung_fatbin_@stem@
rung_fatbin_@stem@:
        .incbin "@base@.fatbin"
        .section .note.GNU-stack,"",%progbits
]] @ONLY)
  set_source_files_properties(${base}.S PROPERTIES OBJECT_DEPENDS ${base}.fatbin)
  set(${sources} ${${sources}} ${base}.S PARENT_SCOPE)
endfunction()
