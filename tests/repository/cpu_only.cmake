# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D root=REPOSITORY -D compiler=COMPILER -D scratch=FOLDER [-D objdump=OBJDUMP] [-D headers=FOLDER]
#       [-D ucx_folders=FOLDERS] -P cpu_only.cmake
#
# Programs without device code have no cost for devices: no umbrella header except cuda.cuh reads a header for devices
# or of CUDA, and a linked program neither needs nor names a library of CUDA. `headers`, if given, precede the others.
# Checks ucx.hpp if `ucx_folders` is given.

cmake_minimum_required(VERSION 3.25)

set(of_devices "/hocket/(transport/cuda_ipc|kernel/device|collective/device)/|[.]cuh$|/cuda[^/]*(/|$)")

file(MAKE_DIRECTORY "${scratch}")
set(includes "")
if(headers)
  list(APPEND includes -I "${headers}")
endif()
list(APPEND includes -I "${root}/include")
foreach(folder IN LISTS ucx_folders)
  list(APPEND includes -I "${folder}")
endforeach()

set(offences 0)
foreach(door IN ITEMS hocket sim parallel ucx)
  if(door STREQUAL "ucx" AND NOT DEFINED ucx_folders)
    message("ucx.hpp: left out, there is no UCX")
    continue()
  endif()
  file(WRITE "${scratch}/${door}.cpp" "#include <hocket/${door}.hpp>\n")
  execute_process(COMMAND "${compiler}" -std=c++20 -M ${includes} "${scratch}/${door}.cpp" OUTPUT_VARIABLE files
                  COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^ \\\n]+" files "${files}")
  list(LENGTH files count)
  if(count LESS 50)
    message(FATAL_ERROR "${door}.hpp reads only ${count} files: the list is incomplete")
  endif()
  list(FILTER files INCLUDE REGEX "${of_devices}")
  foreach(file IN LISTS files)
    message("${door}.hpp reads ${file}")
    math(EXPR offences "${offences} + 1")
  endforeach()
endforeach()

set(program "${scratch}/all_reduce_threads")
execute_process(COMMAND "${compiler}" -std=c++20 -O1 ${includes} "${root}/examples/all_reduce_threads.cpp" -o "${program}"
                        -pthread
                COMMAND_ERROR_IS_FATAL ANY)
file(STRINGS "${program}" names REGEX "libcuda|libnvidia|cuInit|cuMem")
if(objdump)
  execute_process(COMMAND "${objdump}" -p "${program}" OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "NEEDED +[^\n]+" needed "${text}")
  message("a program without device code needs: ${needed}")
  if(NOT needed)
    message(FATAL_ERROR "objdump lists no library that the program needs")
  endif()
  list(FILTER needed INCLUDE REGEX "cuda|nvidia")
  list(APPEND names ${needed})
endif()
if(names)
  message("a program without device code names ${names}")
  math(EXPR offences "${offences} + 1")
endif()

if(offences)
  message(FATAL_ERROR "programs without device code have ${offences} costs for devices")
endif()
