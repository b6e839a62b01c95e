# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Installs the headers, the CMake package and the pkg-config files. None of them depends on the architecture: the tools, which
# do, are another component.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)
set(HOCKET_INSTALL_CMAKEDIR "${CMAKE_INSTALL_DATADIR}/cmake/hocket" CACHE STRING "Folder of the installed CMake package")
mark_as_advanced(HOCKET_INSTALL_CMAKEDIR)
set(package_folder "${HOCKET_INSTALL_CMAKEDIR}")
set(package_build_folder "${PROJECT_BINARY_DIR}/package_files")

install(TARGETS hocket EXPORT hocket-exports FILE_SET HEADERS FILE_SET device_headers)
install(TARGETS hocket_ucx EXPORT hocket-ucx-exports)
install(TARGETS hocket_prometheus EXPORT hocket-prometheus-exports)
install(TARGETS hocket_curl EXPORT hocket-curl-exports)
install(TARGETS hocket_archive EXPORT hocket-archive-exports)
install(EXPORT hocket-exports NAMESPACE hocket:: DESTINATION "${package_folder}")
install(EXPORT hocket-ucx-exports NAMESPACE hocket:: DESTINATION "${package_folder}")
install(EXPORT hocket-prometheus-exports NAMESPACE hocket:: DESTINATION "${package_folder}")
install(EXPORT hocket-curl-exports NAMESPACE hocket:: DESTINATION "${package_folder}")
install(EXPORT hocket-archive-exports NAMESPACE hocket:: DESTINATION "${package_folder}")

configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/hocket-config.cmake.in" "${package_build_folder}/hocket-config.cmake"
  INSTALL_DESTINATION "${package_folder}" NO_SET_AND_CHECK_MACRO
)
write_basic_package_version_file(
  "${package_build_folder}/hocket-config-version.cmake" COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT
)
install(
  FILES "${package_build_folder}/hocket-config.cmake" "${package_build_folder}/hocket-config-version.cmake"
        "${CMAKE_CURRENT_LIST_DIR}/hocket-find-ucx.cmake" "${CMAKE_CURRENT_LIST_DIR}/hocket-compiled.cmake"
        "${CMAKE_CURRENT_LIST_DIR}/hocket-find-prometheus.cmake" "${CMAKE_CURRENT_LIST_DIR}/hocket-compiled.cpp"
        "${CMAKE_CURRENT_LIST_DIR}/hocket-compiled-ucx.cpp" "${CMAKE_CURRENT_LIST_DIR}/hocket-find-curl.cmake"
        "${CMAKE_CURRENT_LIST_DIR}/hocket-find-archive.cmake"
  DESTINATION "${package_folder}"
)

# The package must contain its licence.
install(FILES "${CMAKE_CURRENT_LIST_DIR}/../LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# Relative to the .pc file, so that the installed tree can be moved.
set(pc_folder "${CMAKE_INSTALL_DATADIR}/pkgconfig")
if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}" OR IS_ABSOLUTE "${pc_folder}")
  set(pc_include_folder "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
else()
  file(RELATIVE_PATH pc_include_folder "/prefix/${pc_folder}" "/prefix/${CMAKE_INSTALL_INCLUDEDIR}")
  string(PREPEND pc_include_folder "\${pcfiledir}/")
endif()
foreach(module IN ITEMS hocket hocket-ucx hocket-prometheus hocket-curl hocket-archive)
  configure_file("${CMAKE_CURRENT_LIST_DIR}/${module}.pc.in" "${package_build_folder}/${module}.pc" @ONLY)
  install(FILES "${package_build_folder}/${module}.pc" DESTINATION "${pc_folder}")
endforeach()

if(PROJECT_IS_TOP_LEVEL)
  include("${CMAKE_CURRENT_LIST_DIR}/hocket-debian.cmake")
endif()
