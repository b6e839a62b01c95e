# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D scratch=FOLDER -P code_of_pages_can_fail.cmake
#
# The second of two blocks of a page differs from its file: code_of_pages.cmake must name page and file.

cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${scratch}")
file(WRITE "${scratch}/a.cpp" "// first line\nint a[]{1};\nint b = 2;\n")
foreach(number IN ITEMS 2 3)
  file(WRITE "${scratch}/docs/page.md" "Text.\n\n<!-- from a.cpp -->\n```cpp\nint a[]{1};\n```\n\n"
                                       "<!-- from a.cpp -->\n```cpp\nint b = ${number};\n```\n")
  execute_process(COMMAND "${CMAKE_COMMAND}" -D "root=${scratch}" -P "${CMAKE_CURRENT_LIST_DIR}/code_of_pages.cmake"
                  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(number EQUAL 2 AND NOT (status EQUAL 0 AND output MATCHES "2 blocks"))
    message(FATAL_ERROR "equal code was refused:\n${output}")
  elseif(number EQUAL 3 AND (status EQUAL 0 OR NOT output MATCHES "page.md:[ \n]+code after `<!-- from a.cpp"))
    message(FATAL_ERROR "other code was not refused:\n${output}")
  endif()
endforeach()
