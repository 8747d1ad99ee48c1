# This says what is done to the machine code of strict kernels after they are compiled (tools/sass/README.md). It is checked with the
# compiler release named here, and left out with others and where the tool could not run on this machine.
#
#   rung_sass_step(<stem> <cubin> <command> <tool>)   sets <command> to what a build step adds behind nvcc, and <tool> to the
#                                                      target it needs; both empty where the kernel stays as compiled
set(RUNG_SASS OFF)
if(NOT CMAKE_CROSSCOMPILING)
  file(GLOB sass_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/sass/*.c)
  add_executable(sass EXCLUDE_FROM_ALL ${sass_sources})
  if(RUNG_HAVE_NVCC)
    execute_process(COMMAND ${RUNG_NVCC} --version OUTPUT_VARIABLE nvcc_version)
    if(nvcc_version MATCHES "release 13\\.0")
      set(RUNG_SASS ON)
    endif()
  endif()
endif()

# rung_post(<stem> <post> <gather> <tile> <stages>)   says what is done to a kernel's code: a verb of tools/sass, or nothing; what
# warps that fill the ring do beside the copy engine; and the sizes that the verb has to know. It all stands in the kernel's row.
function(rung_post stem post gather tile stages)
  set_property(GLOBAL PROPERTY RUNG_POST_${stem} "${post}" "${gather}" ${tile} ${stages})
endfunction()

# The rungs of the ladder have it in the field .post of their rows of the catalog.
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
endforeach()

function(rung_sass_step stem cubin command tool)
  set(verb)
  get_property(row GLOBAL PROPERTY RUNG_POST_${stem})
  if(RUNG_SASS AND row)
    list(POP_FRONT row verb gather tile stages)
  endif()
  if(verb STREQUAL "loop")
    if(gather)
      list(APPEND verb_options --gather ${gather})
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
