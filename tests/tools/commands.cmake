# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# What tests of command lines share: an empty folder `scratch`, and a function that runs `program` in it.

file(REMOVE_RECURSE "${scratch}")
file(MAKE_DIRECTORY "${scratch}")

# Runs the program with ARGN, which must exit with `status` and print a text that matches `expression`.
function(expect status expression)
  execute_process(COMMAND "${program}" ${ARGN} WORKING_DIRECTORY "${scratch}" RESULT_VARIABLE found OUTPUT_VARIABLE text
                  ERROR_VARIABLE problems)
  if(NOT found EQUAL status OR NOT "${text}${problems}" MATCHES "${expression}")
    cmake_path(GET program FILENAME name)
    message(FATAL_ERROR "${name} ${ARGN}: exit status ${found}, expected ${status} and ${expression} in:\n"
                        "${text}${problems}")
  endif()
endfunction()
