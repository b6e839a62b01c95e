# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D expect=REGEX [-D fails=ON] [-D only=REGEX] -P run-and-expect.cmake -- COMMAND...
#
# Succeeds if COMMAND exits with 0 (fails=ON: with another status) and its output matches `expect`. With `only`, checks
# only the first line that matches it, such as a compiler's first error. A CTest property would ignore the exit status.

cmake_minimum_required(VERSION 3.25)

if("${expect}" STREQUAL "")
  message(FATAL_ERROR "`expect` is empty: the source must have a line `// expect: REGEX`")
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
  message(FATAL_ERROR "the command succeeded, but should have failed with: ${expect}")
elseif(NOT fails AND NOT status EQUAL 0)
  message(FATAL_ERROR "the command failed: ${status}")
endif()

set(place "the output")
if(only)
  set(place "the first line that matches \"${only}\"")
  string(REGEX MATCH "[^\n]*(${only})[^\n]*" output "${output}")
endif()
if(NOT output MATCHES "${expect}")
  message(FATAL_ERROR "${place} does not match: ${expect}")
endif()
