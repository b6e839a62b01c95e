# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Makes the global targets prometheus-cpp::core and prometheus-cpp::pull if prometheus-cpp is found. Used by the build of
# hocket and by the installed package. May be included repeatedly.

if(NOT TARGET prometheus-cpp::pull)
  block() # the package file sets variables
    find_package(prometheus-cpp CONFIG QUIET GLOBAL)
  endblock()
endif()
