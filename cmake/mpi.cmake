# The transport between processes is built where MPI's compiler is found.
if(RUNG_WITH_MPI AND NOT CMAKE_CROSSCOMPILING AND NOT RUNG_SANITIZE)
  find_package(MPI QUIET COMPONENTS C)
  if(MPI_C_FOUND)
    message(STATUS "MPI transport: on (${MPI_C_COMPILER})")
  else()
    message(STATUS "MPI transport: left out, no MPI found (libopenmpi-dev); products on several processes need it")
  endif()
endif()
