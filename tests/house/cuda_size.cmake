# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D root=REPOSITORY -D nvcc=NVCC -D objdump=OBJDUMP -D scratch=FOLDER -D architectures=NUMBERS -P cuda_size.cmake
#
# What one all_reduce of float on a device adds to a program: code for devices, at most 300 KB for each architecture. What
# it adds for the host, once, is printed.

cmake_minimum_required(VERSION 3.25)

set(most 307200)

# Sets `device` and `host` to the bytes that `program` loads or carries: those of its fat binaries, and all others.
function(sizes_of program device host)
  execute_process(COMMAND "${objdump}" -h "${program}" OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "\n +[0-9]+ [^ ]+ +[0-9a-f]+" sections "${text}")
  set(of_devices 0)
  set(of_host 0)
  foreach(section IN LISTS sections)
    string(REGEX MATCH "[0-9]+ ([^ ]+) +([0-9a-f]+)" section "${section}")
    set(name "${CMAKE_MATCH_1}")
    math(EXPR size "0x${CMAKE_MATCH_2}")
    if(name MATCHES "fatbin")
      math(EXPR of_devices "${of_devices} + ${size}")
    elseif(NOT name MATCHES "^[.](bss|debug.*|comment)$")
      math(EXPR of_host "${of_host} + ${size}")
    endif()
  endforeach()
  if(of_host EQUAL 0)
    message(FATAL_ERROR "objdump lists no sections of ${program}")
  endif()
  set(${device} ${of_devices} PARENT_SCOPE)
  set(${host} ${of_host} PARENT_SCOPE)
endfunction()

file(MAKE_DIRECTORY "${scratch}")
set(targets "")
foreach(architecture IN LISTS architectures)
  string(REGEX MATCH "^[0-9]+[a-z]?" architecture "${architecture}")  # as CMake has them: 90, 90a, 90-real
  list(APPEND targets "-gencode=arch=compute_${architecture},code=sm_${architecture}")
endforeach()
list(LENGTH architectures count)
foreach(name IN ITEMS nothing all_reduce)
  execute_process(COMMAND "${nvcc}" -std=c++20 -O2 ${targets} -I "${root}/include"
                          "${CMAKE_CURRENT_LIST_DIR}/cuda_cost/${name}.cu" -o "${scratch}/${name}" -Xcompiler=-pthread
                  COMMAND_ERROR_IS_FATAL ANY)
  sizes_of("${scratch}/${name}" device_${name} host_${name})
endforeach()

math(EXPR device "(${device_all_reduce} - ${device_nothing}) / ${count}")
math(EXPR host "${host_all_reduce} - ${host_nothing}")
message("one all_reduce of float on a device adds ${device} bytes for each of ${count} architectures (at most ${most}), "
        "and ${host} bytes for the host, with threads as ranks")
if(device GREATER most)
  message(FATAL_ERROR "that is too much")
endif()
