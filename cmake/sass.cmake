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

# The lab's timing loops, whose registers are chosen by hand.
set_property(GLOBAL PROPERTY RUNG_POST_lab_ports RUNG_PATTERNS)

# Rungs of the ladder, whose names hold no tile.
set_property(GLOBAL PROPERTY RUNG_POST_l26_operand_reuse RUNG_ORDERED_FFMAS)
foreach(rung l27_written_loop l29_one_kernel)
  set_property(GLOBAL PROPERTY RUNG_POST_${rung} RUNG_WRITTEN_LOOP)
  set_property(GLOBAL PROPERTY RUNG_SIZES_${rung} _128x256x16_s8)
endforeach()

# What is done stands in the tile's row: .post, and .gather, what warps that fill the ring do beside the copy engine.
function(rung_sass_step stem cubin command tool)
  set(verb)
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
    endif()
    get_property(sizes GLOBAL PROPERTY RUNG_SIZES_${stem})
    string(REGEX MATCH "_([0-9]+x[0-9]+)x[0-9]+_s([0-9]+)$" sizes ${stem}${sizes})
    set(verb loop --tile ${CMAKE_MATCH_1} --stages ${CMAKE_MATCH_2} ${gathers} $<$<BOOL:${RUNG_WERROR}>:--strict>)
  endif()
  if(verb)
    set(${command} COMMAND sass ${verb} ${cubin} PARENT_SCOPE)
    set(${tool} sass PARENT_SCOPE)
  else()
    set(${command} PARENT_SCOPE)
    set(${tool} PARENT_SCOPE)
  endif()
endfunction()
