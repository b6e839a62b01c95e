# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Makes the global target CURL::libcurl if libcurl 7.88 or newer is found. Used by the build of hocket and by the installed
# package. May be included repeatedly.

if(NOT TARGET CURL::libcurl)
  block() # the module sets variables
    find_package(CURL 7.88 QUIET GLOBAL)
  endblock()
endif()
