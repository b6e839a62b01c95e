# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Makes the global targets ucx::ucp and ucx::ucs if UCX is found, by its own package file or else by pkg-config. Used by
# the build of hocket and by the installed package. May be included repeatedly, unlike the package file of UCX.

if(NOT TARGET ucx::ucp)
  block() # the package file of UCX sets variables as common as `prefix`
    find_package(ucx CONFIG QUIET GLOBAL)
    if(NOT TARGET ucx::ucp)
      find_package(PkgConfig QUIET)
      if(PkgConfig_FOUND)
        pkg_check_modules(hocket_ucx_module QUIET IMPORTED_TARGET GLOBAL ucx)
      endif()
      if(TARGET PkgConfig::hocket_ucx_module)
        foreach(library IN ITEMS ucp ucs)
          add_library(ucx::${library} INTERFACE IMPORTED GLOBAL)
          target_link_libraries(ucx::${library} INTERFACE PkgConfig::hocket_ucx_module)
        endforeach()
      endif()
    endif()
  endblock()
endif()
