# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D mutated=FOLDER -D root=REPOSITORY -D compiler=COMPILER -D static=FILE -P shard_mutant.cmake
#
# Succeeds if `static` does not compile with the headers in `mutated` before the others, only because of its assertions.

cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND "${compiler}" -std=c++20 -fsyntax-only -I "${mutated}" -I "${root}/include" "${static}"
                RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(status EQUAL 0)
  message(FATAL_ERROR "it compiled")
endif()
string(REPLACE ";" "," output "${output}")
string(REGEX MATCHALL "[^\n]* error: [^\n]*" errors "${output}")
foreach(error IN LISTS errors)
  if(NOT error MATCHES "static(_| )assert")
    message(FATAL_ERROR "the mutant has another error: ${error}")
  endif()
endforeach()
