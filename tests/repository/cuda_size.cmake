# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D root=REPOSITORY -D nvcc=NVCC -D scratch=FOLDER -D architectures=NUMBERS -P cuda_size.cmake
#
# What a program with the door to devices and one all_reduce of float there, staged or bound, carries for devices: at most 300 KB
# for each architecture. That is all of such a program's code for devices, so what the call adds to another program is no more. Code for
# the host is not made. A reduction that no one kernel does for all ranks carries none that would: at most three quarters of it.

cmake_minimum_required(VERSION 3.25)

set(most 307200)

file(MAKE_DIRECTORY "${scratch}")
set(targets "")
foreach(architecture IN LISTS architectures)
  string(REGEX MATCH "^[0-9]+[a-z]?" architecture "${architecture}")  # as CMake has them: 90, 90a, 90-real
  list(APPEND targets "-gencode=arch=compute_${architecture},code=sm_${architecture}")
endforeach()
list(LENGTH architectures count)

foreach(call IN ITEMS all_reduce bound_all_reduce bound_reduce_scatter)
  set(code "${scratch}/${call}.fatbin")
  set(source ${call})
  set(define "")
  if(call MATCHES "^bound")
    set(source bound)
    string(TOUPPER "-D${call}" define)
  endif()
  file(REMOVE "${code}")
  execute_process(COMMAND "${nvcc}" -std=c++20 -O2 ${targets} -I "${root}/include" ${define} -fatbin
                          "${CMAKE_CURRENT_LIST_DIR}/cuda_cost/${source}.cu" -o "${code}"
                  COMMAND_ERROR_IS_FATAL ANY)
  file(SIZE "${code}" size)
  if(size EQUAL 0)
    message(FATAL_ERROR "nvcc made no code for devices")
  endif()
  math(EXPR each "${size} / ${count}")
  if(call STREQUAL "bound_all_reduce")
    math(EXPR less "${each} * 3 / 4")
  elseif(call STREQUAL "bound_reduce_scatter")
    set(most ${less})
  endif()
  message("the door and one ${call} of float are ${each} bytes for each of ${count} architectures (at most ${most})")
  if(each GREATER most)
    message(FATAL_ERROR "that is too much")
  endif()
endforeach()
