# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A toolchain file that hides UCX, as on a machine that does not have it: CMake does not find it, and the compiler and the
# linker reject its headers and libraries.

set(CMAKE_DISABLE_FIND_PACKAGE_ucx ON)
set(CMAKE_DISABLE_FIND_PACKAGE_PkgConfig ON)
# -B: the compiler runs the linker of this folder.
set(CMAKE_CXX_FLAGS_INIT "-B\"${CMAKE_CURRENT_LIST_DIR}\" -isystem \"${CMAKE_CURRENT_LIST_DIR}/include\"")
