# What is done to the machine code of strict kernels after they are compiled (tools/sass/README.md): checked with the compiler
# release named here; left out with others, and where the tool could not run on this machine.
#
#   rung_sass_step(<stem> <cubin> <command> <tool>)   sets <command> to what a build step adds behind nvcc, and <tool> to the
#                                                      target it needs; both empty where the kernel stays as compiled
set(RUNG_SASS_LOOP "^sm90_(tma|tmak|tmapair|tmashift|tmaslice)_f32_([0-9]+x[0-9]+)x16_s([0-9]+)$")
set(RUNG_SASS_ORDER "^sm90_(tmawarp|lonewarp|lonecopy|lonefour|crowd)_f32_")
set(RUNG_SASS_GATHER_tmashift --gather moves) # warps that fill the ring move operands with loads and stores
set(RUNG_SASS_GATHER_tmapair)                 # the copy engine fills it
foreach(family tma tmak tmaslice)             # warps copy
  set(RUNG_SASS_GATHER_${family} --gather copies)
endforeach()

set(RUNG_SASS OFF)
if(RUNG_HAVE_NVCC AND NOT CMAKE_CROSSCOMPILING)
  execute_process(COMMAND ${RUNG_NVCC} --version OUTPUT_VARIABLE nvcc_version)
  if(nvcc_version MATCHES "release 13\\.0")
    set(RUNG_SASS ON)
    file(GLOB sass_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tools/sass/*.c)
    add_executable(sass EXCLUDE_FROM_ALL ${sass_sources})
  endif()
endif()

function(rung_sass_step stem cubin command tool)
  set(verb)
  if(RUNG_SASS AND stem MATCHES "${RUNG_SASS_ORDER}")
    set(verb order)
  elseif(RUNG_SASS AND stem MATCHES "${RUNG_SASS_LOOP}")
    set(verb loop --tile ${CMAKE_MATCH_2} --stages ${CMAKE_MATCH_3} ${RUNG_SASS_GATHER_${CMAKE_MATCH_1}}
      $<$<BOOL:${RUNG_WERROR}>:--strict>)
  endif()
  if(verb)
    set(${command} COMMAND sass ${verb} ${cubin} PARENT_SCOPE)
    set(${tool} sass PARENT_SCOPE)
  else()
    set(${command} PARENT_SCOPE)
    set(${tool} PARENT_SCOPE)
  endif()
endfunction()
