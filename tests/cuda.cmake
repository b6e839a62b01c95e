# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   tests/<folder>/*.test.cu             one program per folder, built by nvcc for the GPUs of CMAKE_CUDA_ARCHITECTURES; its
#                                        cases tagged [gpu] are a separate test, which is skipped without a GPU, and
#                                        reports the number of skipped cases
#   tests/<folder>/compile_fail/*.cu     nvcc must refuse them with an error that matches their `// expect: REGEX`
#   include/hocket/**/*.cuh              compiled together; with HOCKET_NIGHTLY, each alone
#   include/hocket/**/*.hpp              compiled together
#   bench/gpu.cu                         compiled with HOCKET_NIGHTLY; bench/gpu.sh runs it on machines with a GPU
#
# Only these targets enable the CUDA language, not the library. Without nvcc, the summary lists what is left out.

# Also finds a toolkit that is not on the PATH.
if(HOCKET_NVCC AND NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  set(ENV{CUDACXX} "${HOCKET_NVCC}")
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80 90 100)
endif()
set(hocket_cuda_missing "")
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
if(NOT HOCKET_NVCC)
  return() # the summary reports it
elseif("${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}" MATCHES "-fsanitize")
  set(hocket_cuda_missing "nvcc has no such sanitizers")
elseif(NOT TARGET hocket.tests.main)
  set(hocket_cuda_missing "needs catch2")
else()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.8)
      set(hocket_cuda_missing "needs nvcc 12.8 or newer, this is ${CMAKE_CUDA_COMPILER_VERSION}")
    endif()
  else()
    set(hocket_cuda_missing "${HOCKET_NVCC} does not compile")
  endif()
endif()
if(hocket_cuda_missing)
  set_property(GLOBAL APPEND PROPERTY hocket_left_out "tests of the CUDA parts (${hocket_cuda_missing})")
  return()
endif()

# The host code of these tests runs for a short time, and -O1 would take 1.1 to 1.6 times as long to compile.
set(CMAKE_CUDA_FLAGS_${build_type} "-O0")
# Sets the language by its flag: CMake 3.25 does not know that nvcc supports C++20.
add_library(hocket.tests.cuda INTERFACE)
target_compile_options(
  hocket.tests.cuda INTERFACE
  $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 -Xcompiler=-Wall,-Wextra,-Wconversion,-Wsign-conversion,-Wshadow
  $<$<BOOL:${HOCKET_WARNINGS_AS_ERRORS}>:-Werror=all-warnings>>
)
target_link_libraries(hocket.tests.cuda INTERFACE hocket::hocket)

# ---- programs: one per folder -----------------------------------------------------------------------------------
file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.test.cu")
set(cuda_tests "")
foreach(source IN LISTS sources)
  cmake_path(GET source PARENT_PATH folder)
  cmake_path(RELATIVE_PATH folder OUTPUT_VARIABLE test)
  list(APPEND cuda_tests "${test}")
  list(APPEND cuda_sources_of_${test} "${source}")
endforeach()
list(REMOVE_DUPLICATES cuda_tests)

foreach(test IN LISTS cuda_tests)
  if(HOCKET_TEST_FOLDERS AND NOT test MATCHES "${HOCKET_TEST_FOLDERS}")
    continue()
  endif()
  string(REPLACE "/" "." target "hocket.tests.${test}.cuda")
  string(REGEX REPLACE "/.*" "" layer_folder "${test}")
  add_executable(${target} ${cuda_sources_of_${test}})
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE hocket.tests.cuda hocket.tests.main ${hocket_need_target_catch2})
  add_test(NAME "${test}.cuda" COMMAND ${target} "~[gpu]")
  add_test(NAME "${test}.gpu" COMMAND ${target} "[gpu]")
  hocket_describe_test("${test}.cuda" LABELS unit cuda ${layer_folder} ${test} COST machine)
  hocket_describe_test("${test}.gpu" LABELS gpu COST machine)
  set_tests_properties("${test}.gpu" PROPERTIES SKIP_REGULAR_EXPRESSION "skipped: no GPU for [0-9]+ cases")
endforeach()

# ---- code that nvcc must refuse ---------------------------------------------------------------------------------
set(sources "")
if(NOT HOCKET_TEST_FOLDERS)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cu")
  list(FILTER sources INCLUDE REGEX "/compile_fail/")
endif()
foreach(source IN LISTS sources)
  cmake_path(GET source STEM name)
  hocket_read_marker(expectation "${source}" expect)
  add_test(
    NAME compile_fail/cuda/${name}
    COMMAND "${CMAKE_COMMAND}" -D "expect=${expectation}" -D fails=ON -D "only=error: "
            -P "${PROJECT_SOURCE_DIR}/cmake/run-and-expect.cmake"
            -- "${CMAKE_CUDA_COMPILER}" -std=c++20 -arch=sm_80 --cubin -o "${CMAKE_CURRENT_BINARY_DIR}/${name}.cubin"
            -I "${PROJECT_SOURCE_DIR}/include" "${source}"
  )
  hocket_describe_test(compile_fail/cuda/${name} LABELS compile_fail cuda COST thread)
endforeach()

# ---- the benchmark of machines with a GPU: compiling is the test, bench/gpu.sh builds and runs it -----------------
if(HOCKET_BUILD_BENCHMARKS AND HOCKET_NIGHTLY AND NOT HOCKET_TEST_FOLDERS)
  add_library(hocket.tests.bench_gpu OBJECT "${PROJECT_SOURCE_DIR}/bench/gpu.cu")
  target_compile_options(hocket.tests.bench_gpu PRIVATE -Xcompiler=-O0 -Xptxas=-O0) # takes half the time
  target_include_directories(hocket.tests.bench_gpu PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  target_link_libraries(hocket.tests.bench_gpu PRIVATE hocket.tests.cuda)
endif()

# ---- headers: compiling is the test -----------------------------------------------------------------------------
if(HOCKET_BUILD_REPOSITORY_TESTS AND NOT HOCKET_TEST_FOLDERS)
  set(sources "")
  set(includes "")
  foreach(header IN LISTS hocket_device_headers)
    cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/include" OUTPUT_VARIABLE name)
    string(APPEND includes "#include <${name}>\n")
    set(source "${CMAKE_CURRENT_BINARY_DIR}/header_alone/${name}.cu")
    file(CONFIGURE OUTPUT "${source}" CONTENT "#include <@name@>\n#include <@name@>\n" @ONLY)
    list(APPEND sources "${source}")
  endforeach()
  if(NOT HOCKET_NIGHTLY)
    set(sources "${CMAKE_CURRENT_BINARY_DIR}/device_headers.cu")
    file(CONFIGURE OUTPUT "${sources}" CONTENT "@includes@@includes@" @ONLY)
  endif()
  add_library(hocket.tests.device_headers OBJECT ${sources})
  target_link_libraries(hocket.tests.device_headers PRIVATE hocket.tests.cuda)

  # Host headers together: users also include them in sources for nvcc, whose front end rewrites them for the compiler.
  set(includes "")
  foreach(header IN LISTS hocket_headers)
    cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/include" OUTPUT_VARIABLE name)
    if((name MATCHES "ucx" AND NOT TARGET hocket::ucx) OR (name MATCHES "/prometheus[.]" AND NOT TARGET hocket::prometheus)
       OR (name MATCHES "/curl[.]" AND NOT TARGET hocket::curl)
       OR name MATCHES "^hocket/impl/src")
      continue()
    endif()
    string(APPEND includes "#include <${name}>\n")
  endforeach()
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/host_headers.cu" CONTENT "@includes@" @ONLY)
  add_library(hocket.tests.host_headers_for_nvcc OBJECT "${CMAKE_CURRENT_BINARY_DIR}/host_headers.cu")
  set_target_properties(hocket.tests.host_headers_for_nvcc PROPERTIES CUDA_ARCHITECTURES 90)
  target_link_libraries(
    hocket.tests.host_headers_for_nvcc PRIVATE hocket.tests.cuda $<TARGET_NAME_IF_EXISTS:hocket::ucx>
                                               $<TARGET_NAME_IF_EXISTS:hocket::prometheus> $<TARGET_NAME_IF_EXISTS:hocket::curl>
  )

  # ---- compile time and size of device code ---------------------------------------------------------------------
  add_test(
    NAME repository/cuda_include_cost
    COMMAND hocket.tests.include_cost --cuda "${CMAKE_CUDA_COMPILER}" "${PROJECT_SOURCE_DIR}/include"
            "${CMAKE_CURRENT_BINARY_DIR}/cuda_include_cost"
  )
  add_test(
    NAME repository/cuda_size
    COMMAND "${CMAKE_COMMAND}" -D "root=${PROJECT_SOURCE_DIR}" -D "nvcc=${CMAKE_CUDA_COMPILER}"
            -D "scratch=${CMAKE_CURRENT_BINARY_DIR}/cuda_size" -D "architectures=${CMAKE_CUDA_ARCHITECTURES}"
            -P "${CMAKE_CURRENT_SOURCE_DIR}/repository/cuda_size.cmake"
  )
  hocket_describe_test(repository/cuda_size LABELS repository cuda TIER nightly COST thread)
  hocket_describe_test(repository/cuda_include_cost LABELS repository cuda TIER nightly COST machine)
endif()
