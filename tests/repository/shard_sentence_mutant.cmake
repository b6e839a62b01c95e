# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D mutated=FOLDER -D header=FILE -D root=REPOSITORY -D compiler=COMPILER -D compile_fail=FOLDER -D cases=FILE|...
#       -P shard_sentence_mutant.cmake
#
# Succeeds if one of the misuses `cases` compiles, or loses its expected sentence, with the headers in `mutated` before
# the others. One of these is `header`, which must compile. If all misuses still have their sentence, because other code
# contains it, then the assertions about type traits must fail.

cmake_minimum_required(VERSION 3.25)

set(command "${compiler}" -std=c++20 -fsyntax-only -I "${mutated}" -I "${root}/include" -I "${compile_fail}")
file(WRITE "${mutated}/alone.cpp" "#include <${header}>\n")
execute_process(COMMAND ${command} "${mutated}/alone.cpp" RESULT_VARIABLE status OUTPUT_VARIABLE output
                ERROR_VARIABLE output)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the mutant does not compile: ${output}")
endif()

string(REGEX MATCHALL "[^|]+" cases "${cases}")
foreach(case IN LISTS cases)
  file(STRINGS "${case}" expectation LIMIT_COUNT 1 REGEX "^// expect: ")
  string(REGEX REPLACE "^// expect: *" "" expectation "${expectation}")
  string(REPLACE "\\;" ";" expectation "${expectation}")
  execute_process(COMMAND ${command} "${case}" RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "\\\\(['\"])" "\\1" output "${output}")
  if(status EQUAL 0 OR NOT output MATCHES "${expectation}")
    return()
  endif()
endforeach()
execute_process(COMMAND ${command} "${root}/tests/static/tensor_traits.static.cpp" RESULT_VARIABLE status
                OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT output MATCHES "tensor_traits.static.cpp:[0-9:]+ error: static(_| )assert")
  message(FATAL_ERROR "no misuse and no type trait detects the mutant: ${cases}")
endif()
