# cmake --install: components runtime, development, drop-ins, program, lens, documents (docs/install.md), and an uninstall
# target. `cmake --install BUILD --component NAME` installs one.
include(CMakePackageConfigHelpers)

install(TARGETS rung EXPORT rung
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
if(TARGET rung_static)
  install(TARGETS rung_static EXPORT rung ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
endif()
if(TARGET rung_mpi)
  install(TARGETS rung_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
endif()
foreach(drop_in rung_blas rung_cublas rung_audit rung_jax)
  if(TARGET ${drop_in})
    set_target_properties(${drop_in} PROPERTIES INSTALL_RPATH "$ORIGIN")
    install(TARGETS ${drop_in} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT drop-ins)
  endif()
endforeach()
install(FILES include/rung.h include/rung_catalog.h include/rung_multi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT development)
install(TARGETS rung_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(DIRECTORY learn DESTINATION ${CMAKE_INSTALL_DATADIR}/rung COMPONENT program)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents) # the course says what to read next

# rung.pc finds its prefix from where it lies, however deep the library folder is (lib, lib64, lib/x86_64-linux-gnu, or a whole path).
file(RELATIVE_PATH up ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" up ${up})
foreach(folder LIBDIR INCLUDEDIR)
  file(RELATIVE_PATH pc_${folder} ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_${folder}})
endforeach()
configure_file(packaging/rung.pc.in packaging/rung.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/packaging/rung.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/rung)
install(EXPORT rung NAMESPACE rung:: FILE rung-targets.cmake DESTINATION ${package} COMPONENT development)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/packaging/rung-config.cmake @ONLY CONTENT [[
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/rung-targets.cmake)
]])
# The versions agree as the SONAME says: librung.so.0 serves what was built against any 0.x before it.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/packaging/rung-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/packaging/rung-config.cmake ${PROJECT_BINARY_DIR}/packaging/rung-config-version.cmake
  DESTINATION ${package} COMPONENT development)

# Manual pages and completions are made from the program's own help and from rung.h.
if(NOT CMAKE_CROSSCOMPILING)
  set(pages ${PROJECT_BINARY_DIR}/pages)
  add_custom_command(OUTPUT ${pages}/stamp
    COMMAND ${PROJECT_SOURCE_DIR}/packaging/pages.sh $<TARGET_FILE:rung_cli> ${PROJECT_SOURCE_DIR}/include ${pages}
    COMMAND ${CMAKE_COMMAND} -E touch ${pages}/stamp
    DEPENDS rung_cli packaging/pages.sh include/rung.h include/rung_multi.h include/rung_catalog.h
    COMMENT "Writing manual pages and completions" VERBATIM)
  add_custom_target(rung_pages ALL DEPENDS ${pages}/stamp)
  install(DIRECTORY ${pages}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT documents)
  install(DIRECTORY ${pages}/completions/ DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT documents)
endif()

if(NOT TARGET uninstall)
  add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -DLISTS=${PROJECT_BINARY_DIR} -P ${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake
    COMMENT "Removing what was installed" VERBATIM)
endif()
