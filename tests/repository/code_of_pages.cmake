# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D root=REPOSITORY -P code_of_pages.cmake
#
# Code that a page takes from a file, after a line `<!-- from FILE -->`, must be lines of this file.

cmake_minimum_required(VERSION 3.25)

set(checked 0)
file(GLOB_RECURSE pages "${root}/README.md" "${root}/docs/*.md")
foreach(page IN LISTS pages)
  file(READ "${page}" rest)
  while(rest MATCHES "<!-- from ([^ ]+) -->\n```cpp\n")
    set(source "${CMAKE_MATCH_1}")
    string(FIND "${rest}" "${CMAKE_MATCH_0}" begin)
    string(LENGTH "${CMAKE_MATCH_0}" length)
    math(EXPR begin "${begin} + ${length}")
    string(SUBSTRING "${rest}" ${begin} -1 rest)
    string(FIND "${rest}" "```" length)
    string(SUBSTRING "${rest}" 0 ${length} code)
    file(READ "${root}/${source}" file)
    string(FIND "${file}" "\n${code}" at)
    if(length LESS_EQUAL 0 OR at EQUAL -1)
      message(SEND_ERROR "${page}: code after `<!-- from ${source} -->` is not in this file:\n${code}")
    endif()
    math(EXPR checked "${checked} + 1")
  endwhile()
endforeach()
message(STATUS "${checked} blocks of code are those of their files")
if(checked EQUAL 0)
  message(FATAL_ERROR "no page has a line `<!-- from FILE -->`")
endif()
