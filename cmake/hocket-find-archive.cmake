# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Makes the global target LibArchive::LibArchive if libarchive is found. Used by the build of hocket and by the installed
# package. May be included repeatedly.

if(NOT TARGET LibArchive::LibArchive)
  block() # the module sets variables
    set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL TRUE)
    find_package(LibArchive QUIET)
  endblock()
endif()
