# `cmake --install`: the library, its headers, and what find_package(penstock) and pkg-config read.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/penstock)

install(TARGETS penstock EXPORT penstock_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/penstock DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT penstock_targets NAMESPACE penstock:: DESTINATION ${package_folder})

get_target_property(uring penstock_liburing INTERFACE_LINK_LIBRARIES)
set(PENSTOCK_HAS_LIBURING OFF)
set(PENSTOCK_PC_LIBS "-lpthread")
if(uring)
  set(PENSTOCK_HAS_LIBURING ON)
  string(PREPEND PENSTOCK_PC_LIBS "-luring ")
  target_link_libraries(penstock INTERFACE $<INSTALL_INTERFACE:penstock::liburing>)
endif()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/penstock-config.cmake.in penstock-config.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(penstock-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/penstock-config.cmake ${PROJECT_BINARY_DIR}/penstock-config-version.cmake
        DESTINATION ${package_folder})

# Of the CPU executor: kernels need a device link, which pkg-config cannot describe.
# From its own folder, for the library's may be lib/x86_64-linux-gnu.
file(RELATIVE_PATH PENSTOCK_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/penstock.pc.in penstock.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/penstock.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
