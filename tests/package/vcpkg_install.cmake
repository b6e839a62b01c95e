# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D version=VERSION -D root=FOLDER -P vcpkg_install.cmake -- install PORT --overlay-ports=FOLDER
#
# Stands for vcpkg: runs the steps of an overlay port, and installs the result in <root>/installed/<triplet>. The functions
# that ports call are written here as vcpkg documents them, as far as hocket's port needs them.
#
# What this covers: the portfile runs, its manifest names the helper ports that it needs, the archive has all files, and
# the result has the layout that vcpkg requires. What it does not: vcpkg itself, its helper ports, toolchains and triplets,
# and that what it rewrites in CMake and pkg-config files (paths of the folders that it builds in) remains right.

cmake_minimum_required(VERSION 3.25)

set(arguments "")
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(index RANGE ${last})
  list(APPEND arguments "${CMAKE_ARGV${index}}")
endforeach()
if(NOT arguments MATCHES ";--;install;([^;]+);--overlay-ports=([^;]+)$")
  message(FATAL_ERROR "this stands only for `vcpkg install PORT --overlay-ports=FOLDER`")
endif()

# What vcpkg sets before it runs a portfile.
set(PORT "${CMAKE_MATCH_1}")
cmake_path(ABSOLUTE_PATH CMAKE_MATCH_2 OUTPUT_VARIABLE ports)
set(CURRENT_PORT_DIR "${ports}/${PORT}")
set(TARGET_TRIPLET x64-linux)
set(CURRENT_BUILDTREES_DIR "${root}/buildtrees/${PORT}")
set(CURRENT_PACKAGES_DIR "${root}/packages/${PORT}_${TARGET_TRIPLET}")
set(installed "${root}/installed/${TARGET_TRIPLET}")
set(build "${CURRENT_BUILDTREES_DIR}/${TARGET_TRIPLET}-rel")

# ---- the manifest ---------------------------------------------------------------------------------------------------
file(READ "${CURRENT_PORT_DIR}/vcpkg.json" manifest)
string(JSON name GET "${manifest}" name)
string(JSON version_of_port GET "${manifest}" version)
if(NOT name STREQUAL PORT OR NOT version_of_port STREQUAL version)
  message(FATAL_ERROR "the port's vcpkg.json is of ${name} ${version_of_port}, and should be of ${PORT} ${version}")
endif()

# Each feature is of a component of the CMake package, and names the port that this needs.
string(JSON count LENGTH "${manifest}" features)
math(EXPR last "${count} - 1")
foreach(index RANGE ${last})
  string(JSON feature MEMBER "${manifest}" features ${index})
  string(JSON needed GET "${manifest}" features ${feature} dependencies 0 name)
  if(NOT EXISTS "${CURRENT_PORT_DIR}/../../cmake/hocket-find-${feature}.cmake" OR NOT needed MATCHES "${feature}")
    message(FATAL_ERROR "feature ${feature} is of no component, or needs another port than its own: ${needed}")
  endif()
endforeach()

# A port has the functions of those helper ports that its manifest names as dependencies of the host.
set(helpers "")
string(JSON count LENGTH "${manifest}" dependencies)
math(EXPR last "${count} - 1")
foreach(index RANGE ${last})
  string(JSON helper GET "${manifest}" dependencies ${index} name)
  string(JSON of_host GET "${manifest}" dependencies ${index} host)
  if(of_host)
    list(APPEND helpers ${helper})
  endif()
endforeach()

# Fails if the manifest does not name the helper port that has the calling function.
macro(require_helper helper)
  if(NOT ${helper} IN_LIST helpers)
    message(FATAL_ERROR "${CMAKE_CURRENT_FUNCTION} needs the dependency {\"name\": \"${helper}\", \"host\": true}")
  endif()
endmacro()

# Runs a command, which must succeed, and sets `output` to what it prints.
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE printed ERROR_VARIABLE printed ECHO_ERROR_VARIABLE)
  set(output "${printed}" PARENT_SCOPE)
endfunction()

# ---- the functions that portfiles call --------------------------------------------------------------------------------
# vcpkg_extract_source_archive(<result> ARCHIVE <archive>): the archive must have one folder, whose content is the sources.
function(vcpkg_extract_source_archive result)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "ARCHIVE" "")
  set(folder "${CURRENT_BUILDTREES_DIR}/src")
  file(ARCHIVE_EXTRACT INPUT "${arg_ARCHIVE}" DESTINATION "${folder}")
  file(GLOB entries "${folder}/*")
  list(LENGTH entries count)
  if(NOT count EQUAL 1 OR NOT IS_DIRECTORY "${entries}")
    message(FATAL_ERROR "the archive must contain one folder, and contains: ${entries}")
  endif()
  set(${result} "${entries}" PARENT_SCOPE)
endfunction()

# vcpkg_cmake_configure(SOURCE_PATH <folder> [OPTIONS <setting>...]): each setting must be used.
function(vcpkg_cmake_configure)
  require_helper(vcpkg-cmake)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  if(NOT VCPKG_BUILD_TYPE STREQUAL "release")
    message(FATAL_ERROR "a port of headers is built once: the portfile must set VCPKG_BUILD_TYPE to release")
  endif()
  run("${CMAKE_COMMAND}" -S "${arg_SOURCE_PATH}" -B "${build}" -G Ninja -DCMAKE_BUILD_TYPE=Release
      "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}" ${arg_OPTIONS})
  if(output MATCHES "Manually-specified variables were not used")
    message(FATAL_ERROR "the portfile sets options that hocket does not have: ${output}")
  endif()
endfunction()

function(vcpkg_cmake_install)
  require_helper(vcpkg-cmake)
  run("${CMAKE_COMMAND}" --build "${build}" --target install)
endfunction()

# vcpkg_cmake_config_fixup(): the CMake package must be in share/<port> already.
function(vcpkg_cmake_config_fixup)
  require_helper(vcpkg-cmake-config)
  if(NOT EXISTS "${CURRENT_PACKAGES_DIR}/share/${PORT}/${PORT}-config.cmake")
    message(FATAL_ERROR "there is no share/${PORT}/${PORT}-config.cmake")
  endif()
endfunction()

# vcpkg_fixup_pkgconfig(SKIP_CHECK): the files must be relative to their own folder already.
function(vcpkg_fixup_pkgconfig)
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  file(INSTALL ${arg_FILE_LIST} DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}" RENAME copyright)
endfunction()

# ---- the steps --------------------------------------------------------------------------------------------------------
file(REMOVE_RECURSE "${CURRENT_BUILDTREES_DIR}" "${CURRENT_PACKAGES_DIR}")
include("${CURRENT_PORT_DIR}/portfile.cmake")

# What vcpkg checks after a build: the licence, no empty folder, no folder of the build in a file.
if(NOT EXISTS "${CURRENT_PACKAGES_DIR}/share/${PORT}/copyright")
  message(FATAL_ERROR "the port installs no share/${PORT}/copyright")
endif()
file(GLOB_RECURSE entries LIST_DIRECTORIES true "${CURRENT_PACKAGES_DIR}/*")
foreach(entry IN LISTS entries)
  if(IS_DIRECTORY "${entry}")
    file(GLOB content "${entry}/*")
    if(NOT content)
      message(FATAL_ERROR "the port installs an empty folder: ${entry}")
    endif()
  elseif(entry MATCHES "[.](cmake|pc)$")
    file(READ "${entry}" content)
    string(FIND "${content}" "${root}" position)
    if(NOT position EQUAL -1)
      message(FATAL_ERROR "${entry} contains a folder in which it was built: ${root}")
    endif()
  endif()
endforeach()
file(COPY "${CURRENT_PACKAGES_DIR}/" DESTINATION "${installed}")
