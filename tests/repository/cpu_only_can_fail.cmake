# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D root=REPOSITORY -D compiler=COMPILER -D scratch=FOLDER -P cpu_only_can_fail.cmake
#
# Makes a host header include one for devices: cpu_only.cmake must name it, and the umbrella headers that read it.

cmake_minimum_required(VERSION 3.25)

file(READ "${root}/include/hocket/core/buffer.hpp" header)
file(WRITE "${scratch}/headers/hocket/core/buffer.hpp"
     "${header}\n#include <hocket/transport/cuda_ipc/driver.hpp>\n[[gnu::used]] static int (*const names_it)(const char*) = [](const char*) { return hocket::cuda_ipc::driver::load(*new hocket::failure) ? 1 : 0; };\n")
execute_process(COMMAND "${CMAKE_COMMAND}" -D "root=${root}" -D "compiler=${compiler}" -D "scratch=${scratch}/run"
                        -D "headers=${scratch}/headers" -P "${CMAKE_CURRENT_LIST_DIR}/cpu_only.cmake"
                RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
foreach(expectation IN ITEMS "hocket.hpp reads [^\n]*/transport/cuda_ipc/driver.hpp"
                             "parallel.hpp reads [^\n]*/transport/cuda_ipc/driver.hpp"
                             "a program without device code names [^\n]*libcuda")
  if(status EQUAL 0 OR NOT output MATCHES "${expectation}")
    message(SEND_ERROR "not found: ${expectation}\n${output}")
  endif()
endforeach()
