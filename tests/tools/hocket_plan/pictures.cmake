# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D program=HOCKET_PLAN -D docs=FOLDER -D scratch=FOLDER -P pictures.cmake
#
# The pages contain the commands that drew their pictures. Fails if one of these commands no longer draws the picture in
# docs/pictures: then run the printed command in that folder.

cmake_minimum_required(VERSION 3.25)

file(GLOB_RECURSE pages "${docs}/*.md")
set(commands "")
foreach(page IN LISTS pages)
  file(READ "${page}" text)
  string(REGEX MATCHALL "hocket-plan (pipeline|collective) [^`;)\n]*--svg [a-z0-9_]+[.]svg" found "${text}")
  list(APPEND commands ${found})
endforeach()
list(REMOVE_DUPLICATES commands)
file(REMOVE_RECURSE "${scratch}")
file(MAKE_DIRECTORY "${scratch}")
set(count 0)
foreach(command IN LISTS commands)
  string(REGEX REPLACE "^.* --svg " "" name "${command}")
  if(NOT EXISTS "${docs}/pictures/${name}")
    continue()
  endif()
  string(REGEX REPLACE "^hocket-plan " "" arguments "${command}")
  separate_arguments(arguments)
  execute_process(COMMAND "${program}" ${arguments} WORKING_DIRECTORY "${scratch}" RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  file(READ "${docs}/pictures/${name}" expected)
  set(drawn "")
  if(EXISTS "${scratch}/${name}")
    file(READ "${scratch}/${name}" drawn)
  endif()
  if(NOT status EQUAL 0 OR NOT drawn STREQUAL expected)
    message(SEND_ERROR "docs/pictures/${name} is not what this draws: ${command}\n${output}")
  endif()
  math(EXPR count "${count} + 1")
endforeach()
message("${count} pictures compared")
if(count LESS 8)
  message(FATAL_ERROR "the pages contain the commands of too few pictures")
endif()
