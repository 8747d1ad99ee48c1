# cmake --install: library, drop-ins, command, headers, pkg-config file, CMake package.
include(CMakePackageConfigHelpers)

install(TARGETS rung EXPORT rung LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS rung_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET rung_mpi)
  install(TARGETS rung_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
foreach(drop_in rung_blas rung_cublas rung_audit)
  if(TARGET ${drop_in})
    set_target_properties(${drop_in} PROPERTIES INSTALL_RPATH "$ORIGIN")
    install(TARGETS ${drop_in} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endforeach()
install(FILES include/rung.h include/rung_catalog.h include/rung_multi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY learn DESTINATION ${CMAKE_INSTALL_DATADIR}/rung)

configure_file(packaging/rung.pc.in packaging/rung.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/packaging/rung.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/rung)
install(EXPORT rung NAMESPACE rung:: FILE rung-config.cmake DESTINATION ${package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/packaging/rung-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/packaging/rung-config-version.cmake DESTINATION ${package})
