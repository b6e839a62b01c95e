# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Build rules shared by the project's own programs (tests, examples, benchmarks, tools). They do not affect targets that
# link hocket::hocket.
#
# Marker lines in a source tell the build about it:
#   // needs: ucx eigen      omitted if one of these is missing: ucx, prometheus, eigen, cli11, benchmark,
#                         nlohmann_json, nvtx, archive, curl
#   // arguments: --steps 5  what the test of an example passes
#   // expect: REGEX         matches the output of an example, or the first error of a misuse
#   // alone: why            for a test that is not compiled together with others of its folder
#   // unsanitized: why      for a test that no sanitizer can run, or that runs for minutes under one
#   // header_only: why      for a program that compiles all of hocket itself; others link hocket::compiled

option(HOCKET_WARNINGS_AS_ERRORS "Treat warnings in the project's own programs as errors" OFF)
# With -Og, g++ takes half the time that it takes with -O2: a build for tests optimises only programs that run long.
set(HOCKET_COMPUTING_OPTIONS "" CACHE STRING "Compile options of the project's programs that compute much")
set(HOCKET_TEST_TIMEOUT 300 CACHE STRING "Seconds after which a test has failed")

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  message(FATAL_ERROR "hocket needs g++ 12 or newer, this is ${CMAKE_CXX_COMPILER_VERSION}: set CMAKE_CXX_COMPILER")
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 16)
  message(FATAL_ERROR "hocket needs clang 16 or newer, this is ${CMAKE_CXX_COMPILER_VERSION}: set CMAKE_CXX_COMPILER")
endif()

# ccache shares objects between checkouts: paths below this one are hashed relative to it. In depend mode it takes the
# includes of a source from the compiler instead of running the preprocessor before.
find_program(HOCKET_CCACHE ccache DOC "Compiler cache of the project's own programs; OFF: none")
mark_as_advanced(HOCKET_CCACHE)
if(HOCKET_CCACHE AND PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
                                  CCACHE_DEPEND=1 "${HOCKET_CCACHE}")
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${CMAKE_CXX_COMPILER_LAUNCHER}")
endif()

set(CMAKE_CXX_EXTENSIONS OFF)
add_library(hocket_development INTERFACE)
target_link_libraries(hocket_development INTERFACE hocket::hocket)
# Runs the compiler's garbage collection less often: g++ 12 takes 10 % less time, and 1.3 GB instead of 1.0.
set(less_collection --param=ggc-min-expand=400 --param=ggc-min-heapsize=1000000)
target_compile_options(
  hocket_development INTERFACE
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:${less_collection}>
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow
  $<$<BOOL:${HOCKET_WARNINGS_AS_ERRORS}>:-Werror>>
)

find_package(Catch2 QUIET)
find_package(benchmark QUIET)
find_package(CLI11 QUIET)
find_package(Eigen3 QUIET)
find_package(nlohmann_json QUIET)

# NVTX consists of CUDA headers only, which load the library through libdl.
find_path(HOCKET_NVTX_INCLUDE nvtx3/nvToolsExt.h HINTS /usr/local/cuda/include ENV CUDA_PATH PATH_SUFFIXES include)
mark_as_advanced(HOCKET_NVTX_INCLUDE)
if(HOCKET_NVTX_INCLUDE)
  add_library(hocket_nvtx INTERFACE)
  target_include_directories(hocket_nvtx SYSTEM INTERFACE "${HOCKET_NVTX_INCLUDE}")
  target_link_libraries(hocket_nvtx INTERFACE ${CMAKE_DL_LIBS})
endif()

# For each word after `// needs:`, the target that it stands for, and the Debian package that contains it.
set(hocket_need_target_ucx hocket::ucx)
set(hocket_need_target_prometheus hocket::prometheus)
set(hocket_need_target_curl hocket::curl)
set(hocket_need_target_eigen Eigen3::Eigen)
set(hocket_need_target_cli11 CLI11::CLI11)
set(hocket_need_target_benchmark benchmark::benchmark)
set(hocket_need_target_nlohmann_json nlohmann_json::nlohmann_json)
set(hocket_need_target_archive hocket::archive)
set(hocket_need_target_catch2 Catch2::Catch2)
set(hocket_need_target_nvtx hocket_nvtx)
set(hocket_need_package_ucx libucx-dev)
set(hocket_need_package_prometheus prometheus-cpp-dev)
set(hocket_need_package_curl libcurl4-openssl-dev)
set(hocket_need_package_eigen libeigen3-dev)
set(hocket_need_package_cli11 libcli11-dev)
set(hocket_need_package_benchmark libbenchmark-dev)
set(hocket_need_package_nlohmann_json nlohmann-json3-dev)
set(hocket_need_package_archive libarchive-dev)
set(hocket_need_package_catch2 catch2)
set(hocket_need_package_nvtx "the headers of CUDA")
set(hocket_need_package_pkg_config pkg-config)

# Sets `result` to the text after `// <marker>:` at the beginning of a line of `source`, or to the empty string.
function(hocket_read_marker result source marker)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
  file(STRINGS "${source}" lines LIMIT_COUNT 1 REGEX "^// ${marker}: ")
  string(REGEX REPLACE "^// ${marker}: *" "" text "${lines}")
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

# Sets `targets` to the targets that a program with these needs must link, and `missing` to the needs not met here.
function(hocket_resolve_needs targets missing)
  set(found "")
  set(lacking "")
  foreach(need IN LISTS ARGN)
    if(NOT DEFINED hocket_need_target_${need})
      message(FATAL_ERROR "hocket: unknown word \"${need}\" after `// needs:`: add it to cmake/hocket-development.cmake")
    elseif(TARGET ${hocket_need_target_${need}})
      list(APPEND found ${hocket_need_target_${need}})
    else()
      list(APPEND lacking ${need})
    endif()
  endforeach()
  set(${targets} "${found}" PARENT_SCOPE)
  set(${missing} "${lacking}" PARENT_SCOPE)
endfunction()

# Records for the summary that `what` is not built because the needs after it are missing.
function(hocket_leave_out what)
  set(packages "")
  foreach(need IN LISTS ARGN)
    list(APPEND packages ${hocket_need_package_${need}})
  endforeach()
  list(JOIN packages " " packages)
  set_property(GLOBAL APPEND PROPERTY hocket_left_out "${what} (needs ${packages})")
endfunction()

# Optimises the compiled part of the library, because it is compiled only once.
foreach(target IN ITEMS hocket_compiled hocket_compiled_ucx)
  if(TARGET ${target} AND PROJECT_IS_TOP_LEVEL)
    target_link_libraries(${target} PRIVATE hocket_development)
    target_compile_options(${target} PRIVATE ${HOCKET_COMPUTING_OPTIONS})
  endif()
endforeach()

# Adds a program from `SOURCES` that links the targets of the `// needs:` lines of its sources and `LINK`. If a need is
# missing, adds no target and records it for the summary. `COMPILED` names a library to use instead of hocket::compiled
# (and, with the suffix _ucx, instead of hocket::compiled_ucx); HEADER_ONLY links neither.
function(hocket_add_program target)
  cmake_parse_arguments(PARSE_ARGV 1 program "HEADER_ONLY" "OUTPUT_NAME;COMPILED" "SOURCES;NEEDS;LINK")
  foreach(source IN LISTS program_SOURCES)
    hocket_read_marker(needs "${source}" needs)
    separate_arguments(needs)
    list(APPEND program_NEEDS ${needs})
    hocket_read_marker(reason "${source}" header_only)
    if(reason)
      set(program_HEADER_ONLY ON)
    endif()
  endforeach()
  list(REMOVE_DUPLICATES program_NEEDS)
  hocket_resolve_needs(needed missing ${program_NEEDS})
  if(missing)
    hocket_leave_out(${target} ${missing})
    return()
  endif()
  add_executable(${target} ${program_SOURCES})
  target_link_libraries(${target} PRIVATE hocket_development ${needed} ${program_LINK})
  if(NOT program_COMPILED)
    set(program_COMPILED hocket::compiled)
  endif()
  if(NOT program_HEADER_ONLY AND "ucx" IN_LIST program_NEEDS)
    target_link_libraries(${target} PRIVATE ${program_COMPILED}_ucx)
  elseif(NOT program_HEADER_ONLY)
    target_link_libraries(${target} PRIVATE ${program_COMPILED})
  endif()
  if(program_OUTPUT_NAME)
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${program_OUTPUT_NAME})
  endif()
endfunction()

find_program(HOCKET_NVCC nvcc HINTS ENV CUDA_PATH PATH_SUFFIXES bin PATHS /usr/local/cuda)
mark_as_advanced(HOCKET_NVCC)

if(HOCKET_BUILD_TESTS)
  enable_testing()
  add_subdirectory(tests)
endif()
if(HOCKET_BUILD_EXAMPLES)
  add_subdirectory(examples)
endif()
if(HOCKET_BUILD_BENCHMARKS)
  add_subdirectory(bench)
endif()
if(HOCKET_BUILD_TOOLS)
  add_subdirectory(tools)
endif()

if(PROJECT_IS_TOP_LEVEL)
  if(NOT TARGET hocket::ucx)
    set_property(GLOBAL APPEND PROPERTY hocket_left_out "everything over UCX (needs ${hocket_need_package_ucx})")
  endif()
  if(NOT TARGET hocket::prometheus)
    set_property(GLOBAL APPEND PROPERTY hocket_left_out "the endpoint for Prometheus (needs ${hocket_need_package_prometheus})")
  endif()
  if(NOT TARGET hocket::curl)
    set_property(GLOBAL APPEND PROPERTY hocket_left_out "reading files over HTTP and from S3 (needs ${hocket_need_package_curl} 7.88)")
  endif()
  if(NOT HOCKET_NVCC)
    set_property(GLOBAL APPEND PROPERTY hocket_left_out "the CUDA parts (no nvcc on this machine)")
  endif()

  get_property(left_out GLOBAL PROPERTY hocket_left_out)
  message(STATUS "hocket ${PROJECT_VERSION}, ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  if(ucx_DIR)
    message(STATUS "hocket: UCX from ${ucx_DIR}")
  endif()
  foreach(entry IN LISTS left_out)
    message(STATUS "hocket: not built: ${entry}")
  endforeach()
endif()
