# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A vcpkg overlay port. It builds an archive of the sources that is beside this file, so that vcpkg builds again if the
# sources have changed. UCX comes from the system: find_package(hocket COMPONENTS ucx) finds it.

set(archive "${CURRENT_PORT_DIR}/hocket.tar.gz")
if(NOT EXISTS "${archive}")
  message(FATAL_ERROR "there is no ${archive}: make it in a clone of hocket by "
                      "`git archive --prefix=hocket/ --output=ports/hocket/hocket.tar.gz HEAD`")
endif()
vcpkg_extract_source_archive(source ARCHIVE "${archive}")

set(VCPKG_BUILD_TYPE release) # there are only headers
vcpkg_cmake_configure(
  SOURCE_PATH "${source}"
  OPTIONS -DHOCKET_BUILD_TESTS=OFF -DHOCKET_BUILD_EXAMPLES=OFF -DHOCKET_BUILD_BENCHMARKS=OFF -DHOCKET_BUILD_TOOLS=OFF
          -DHOCKET_WITH_UCX=OFF -DHOCKET_WITH_PROMETHEUS=OFF -DHOCKET_WITH_CURL=OFF
          -DHOCKET_WITH_ARCHIVE=OFF -DHOCKET_INSTALL_CMAKEDIR=share/hocket
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup()
vcpkg_fixup_pkgconfig(SKIP_CHECK) # the check would search for UCX, which hocket-ucx.pc requires, among vcpkg's packages
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/doc") # only the licence
vcpkg_install_copyright(FILE_LIST "${source}/LICENSE")
