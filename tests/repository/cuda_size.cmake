# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D root=REPOSITORY -D nvcc=NVCC -D scratch=FOLDER -D architectures=NUMBERS -P cuda_size.cmake
#
# Limits the device code of a program with cuda.cuh and one all_reduce of float on devices, staged or bound, to 300 KB
# for each architecture. The call adds at most this to another program. A reduce_scatter, which no single kernel does for
# all ranks, must have at most three quarters of it. Makes no host code.

cmake_minimum_required(VERSION 3.25)

set(most 307200)

file(MAKE_DIRECTORY "${scratch}")
set(targets "")
foreach(architecture IN LISTS architectures)
  string(REGEX MATCH "^[0-9]+[a-z]?" architecture "${architecture}")  # in CMake's forms: 90, 90a, 90-real
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
    message(FATAL_ERROR "nvcc made no device code")
  endif()
  math(EXPR each "${size} / ${count}")
  if(call STREQUAL "bound_all_reduce")
    math(EXPR less "${each} * 3 / 4")
  elseif(call STREQUAL "bound_reduce_scatter")
    set(most ${less})
  endif()
  message("cuda.cuh and one ${call} of float have ${each} bytes for each of ${count} architectures (at most ${most})")
  if(each GREATER most)
    message(FATAL_ERROR "the device code exceeds the limit")
  endif()
endforeach()
