# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The library's targets for other projects:
#   hocket::hocket  the headers, C++20, threads
#   hocket::ucx     hocket::hocket and UCX, for <hocket/ucx.hpp>; exists only if UCX was found
#   hocket::prometheus  hocket::hocket and prometheus-cpp, for <hocket/observe/prometheus.hpp>; exists only if that was found
#   hocket::curl    hocket::hocket and libcurl, for <hocket/data/remote/curl.hpp>; exists only if that was found
#   hocket::archive  hocket::hocket and libarchive, for <hocket/data/archive.hpp>; exists only if that was found
#   hocket::compiled, hocket::compiled_ucx: see hocket-compiled.cmake
#
# Every header is always installed: a program chooses parts by what it includes and links.

if(NOT TARGET Threads::Threads)
  find_package(Threads REQUIRED GLOBAL)
endif()

file(GLOB_RECURSE hocket_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/hocket/*.hpp")
file(GLOB_RECURSE hocket_definitions CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/hocket/*.ipp")
file(GLOB_RECURSE hocket_device_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/hocket/*.cuh")

add_library(hocket INTERFACE)
add_library(hocket::hocket ALIAS hocket)
target_sources(
  hocket
  INTERFACE
    FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${hocket_headers} ${hocket_definitions}
    FILE_SET device_headers TYPE HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${hocket_device_headers}
)
target_compile_features(hocket INTERFACE cxx_std_20)
target_link_libraries(hocket INTERFACE Threads::Threads)

# These targets always exist, so that the installed files do not depend on this machine; their public names exist only if
# their libraries were found.
add_library(hocket_ucx INTERFACE)
set_target_properties(hocket_ucx PROPERTIES EXPORT_NAME ucx)
target_link_libraries(hocket_ucx INTERFACE hocket ucx::ucp ucx::ucs)
add_library(hocket_prometheus INTERFACE)
set_target_properties(hocket_prometheus PROPERTIES EXPORT_NAME prometheus)
target_link_libraries(hocket_prometheus INTERFACE hocket prometheus-cpp::core prometheus-cpp::pull)
add_library(hocket_curl INTERFACE)
set_target_properties(hocket_curl PROPERTIES EXPORT_NAME curl)
target_link_libraries(hocket_curl INTERFACE hocket CURL::libcurl)
add_library(hocket_archive INTERFACE)
set_target_properties(hocket_archive PROPERTIES EXPORT_NAME archive)
target_link_libraries(hocket_archive INTERFACE hocket LibArchive::LibArchive)

if(HOCKET_WITH_UCX)
  include("${CMAKE_CURRENT_LIST_DIR}/hocket-find-ucx.cmake")
  if(TARGET ucx::ucp)
    add_library(hocket::ucx ALIAS hocket_ucx)
  elseif(NOT HOCKET_WITH_UCX STREQUAL "AUTO")
    message(FATAL_ERROR "hocket: HOCKET_WITH_UCX is ${HOCKET_WITH_UCX}, but UCX was not found: install libucx-dev, "
                        "or add the folder of another UCX to CMAKE_PREFIX_PATH")
  endif()
endif()

# Offers hocket::<component> if <target> of its library, `library` in messages, is found; `package` is Debian's.
function(hocket_offer_component component target library package)
  string(TOUPPER "HOCKET_WITH_${component}" option)
  if(NOT ${option})
    return()
  endif()
  include("${CMAKE_CURRENT_LIST_DIR}/hocket-find-${component}.cmake")
  if(TARGET ${target})
    add_library(hocket::${component} ALIAS hocket_${component})
  elseif(NOT "${${option}}" STREQUAL "AUTO")
    message(FATAL_ERROR "hocket: ${option} is ${${option}}, but ${library} was not found: install ${package}, or add the "
                        "folder of another one to CMAKE_PREFIX_PATH")
  endif()
endfunction()
hocket_offer_component(prometheus prometheus-cpp::pull prometheus-cpp prometheus-cpp-dev)
hocket_offer_component(curl CURL::libcurl "libcurl 7.88 or newer" libcurl4-openssl-dev)
hocket_offer_component(archive LibArchive::LibArchive libarchive libarchive-dev)

include("${CMAKE_CURRENT_LIST_DIR}/hocket-compiled.cmake")
