# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# `cmake --workflow --preset debian` makes build/package/libhocket-dev_<version>_all.deb from what hocket-install.cmake
# installs.

set(CPACK_PACKAGE_NAME libhocket-dev)
set(CPACK_PACKAGE_CONTACT "The maintainers of hocket")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
# Programs whose ranks are all threads need no other package.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "cmake, libarchive-dev, libcurl4-openssl-dev, libucx-dev, pkg-config, prometheus-cpp-dev")
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};hocket;development;/")
include(CPack)
