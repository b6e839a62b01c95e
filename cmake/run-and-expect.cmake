# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D expect=REGEX [-D fails=ON] [-D only=REGEX] -P run-and-expect.cmake -- COMMAND...
#
# Succeeds if COMMAND ends with 0 (with fails=ON: with something else) and what it prints matches `expect`. With
# `only`, nothing but the first line that matches it is looked at: the first error of a compiler, say. A test property of
# CTest would look at the output and forget the exit status.

cmake_minimum_required(VERSION 3.25)

if("${expect}" STREQUAL "")
  message(FATAL_ERROR "nothing is expected: does the source lack its line `// expect: REGEX`?")
endif()

set(command "")
set(after_separator FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(index RANGE ${last})
  if(after_separator)
    list(APPEND command "${CMAKE_ARGV${index}}")
  elseif(CMAKE_ARGV${index} STREQUAL "--")
    set(after_separator TRUE)
  endif()
endforeach()

execute_process(COMMAND ${command} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
message("${output}")

if(fails AND status EQUAL 0)
  message(FATAL_ERROR "it succeeded, and should have failed with: ${expect}")
elseif(NOT fails AND NOT status EQUAL 0)
  message(FATAL_ERROR "it failed: ${status}")
endif()

set(place "what it printed")
if(only)
  set(place "the first line that matches \"${only}\"")
  string(REGEX MATCH "[^\n]*(${only})[^\n]*" output "${output}")
endif()
if(NOT output MATCHES "${expect}")
  message(FATAL_ERROR "${place} does not match: ${expect}")
endif()
