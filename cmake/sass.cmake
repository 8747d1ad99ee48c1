# What is done to the machine code of strict kernels after they are compiled (tools/sass/README.md): checked with the compiler
# release named here; left out with others, and where the tool could not run on this machine.
#
#   rung_sass_step(<stem> <cubin> <command> <tool>)   sets <command> to what a build step adds behind nvcc, and <tool> to the
#                                                      target it needs; both empty where the kernel stays as compiled
set(RUNG_SASS OFF)
if(RUNG_HAVE_NVCC AND NOT CMAKE_CROSSCOMPILING)
  execute_process(COMMAND ${RUNG_NVCC} --version OUTPUT_VARIABLE nvcc_version)
  if(nvcc_version MATCHES "release 13\\.0")
    set(RUNG_SASS ON)
    file(GLOB sass_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/sass/*.c)
    add_executable(sass EXCLUDE_FROM_ALL ${sass_sources})
  endif()
endif()

<<<<<<< HEAD
# The lab's timing loops, whose registers are chosen by hand.
set_property(GLOBAL PROPERTY RUNG_POST_lab_ports RUNG_PATTERNS)

# Rungs of the ladder, whose names hold no tile.
set_property(GLOBAL PROPERTY RUNG_POST_l26_operand_reuse RUNG_ORDERED_FFMAS)
foreach(rung l27_written_loop l29_one_kernel)
  set_property(GLOBAL PROPERTY RUNG_POST_${rung} RUNG_WRITTEN_LOOP)
  set_property(GLOBAL PROPERTY RUNG_SIZES_${rung} _128x256x16_s8)
=======
# rung_post(<stem> <post> <gather> <tile> <stages>)   what is done to a kernel's code: a verb of tools/sass, or nothing; what
# warps that fill the ring do beside the copy engine; and the sizes that the verb has to know. It all stands in the kernel's row.
function(rung_post stem post gather tile stages)
  set_property(GLOBAL PROPERTY RUNG_POST_${stem} "${post}" "${gather}" ${tile} ${stages})
endfunction()

# Rungs of the ladder: from their rows of the catalog.
set(rung_rows ${PROJECT_SOURCE_DIR}/src/ladder/gpu/rows.inc)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${rung_rows})
file(READ ${rung_rows} rung_rows)
string(REPLACE ";" "\t" rung_rows "${rung_rows}")
string(REPLACE "RUNG_CUDA(" ";" rung_rows "${rung_rows}")
foreach(row IN LISTS rung_rows)
  if(row MATCHES "[.]post = \"([a-z]+)\"")
    set(post ${CMAKE_MATCH_1})
    string(REGEX MATCH "^[a-z0-9_]+" stem "${row}")
    string(REGEX MATCH "[.]bm = ([0-9]+), [.]bn = ([0-9]+), [.]bk = [0-9]+, [.]stages = ([0-9]+)" sizes "${row}")
    rung_post(${stem} ${post} "" ${CMAKE_MATCH_1}x${CMAKE_MATCH_2} ${CMAKE_MATCH_3})
  endif()
>>>>>>> d7156a7 (refactor: kernels' bodies in functions; rungs' post-compile step from their rows; test: functions of 80 lines, macros of .inc files)
endforeach()

function(rung_sass_step stem cubin command tool)
  set(verb)
<<<<<<< HEAD
  get_property(post GLOBAL PROPERTY RUNG_POST_${stem})
  get_property(gather GLOBAL PROPERTY RUNG_GATHER_${stem})
  if(RUNG_SASS AND post STREQUAL "RUNG_ORDERED_FFMAS")
    set(verb order)
  elseif(RUNG_SASS AND post STREQUAL "RUNG_PATTERNS")
    set(verb pattern)
  elseif(RUNG_SASS AND post STREQUAL "RUNG_WRITTEN_LOOP")
    set(gathers)
    if(gather MATCHES "^RUNG_GATHER_([A-Z]+)$")
      string(TOLOWER ${CMAKE_MATCH_1} gathers)
      set(gathers --gather ${gathers})
=======
  get_property(row GLOBAL PROPERTY RUNG_POST_${stem})
  if(RUNG_SASS AND row)
    list(POP_FRONT row verb gather tile stages)
  endif()
  if(verb STREQUAL "loop")
    if(gather)
      list(APPEND verb_options --gather ${gather})
>>>>>>> d7156a7 (refactor: kernels' bodies in functions; rungs' post-compile step from their rows; test: functions of 80 lines, macros of .inc files)
    endif()
    list(PREPEND verb_options --tile ${tile} --stages ${stages})
    set(verb loop ${verb_options} $<$<BOOL:${RUNG_WERROR}>:--strict>)
  endif()
  if(verb)
    set(${command} COMMAND sass ${verb} ${cubin} PARENT_SCOPE)
    set(${tool} sass PARENT_SCOPE)
  else()
    set(${command} PARENT_SCOPE)
    set(${tool} PARENT_SCOPE)
  endif()
endfunction()
