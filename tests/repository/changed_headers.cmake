# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D root=<repository> -D compiler=<c++> [-D folders=<include folders>] [-D base=<commit>] -P changed_headers.cmake
#
# Compiles each host header that differs from `base` in a separate translation unit, as the first line and included
# twice. The default of `base` is the merge base with the upstream branch, or else the commit before the last one.
# Passes with a message if there is no git or no such commit.

cmake_minimum_required(VERSION 3.25)

find_program(git git)
if(NOT git)
  message("skipped: without git, the changed headers are unknown")
  return()
endif()

# Sets `result` to the output of git, and `result`_failed to whether it failed.
function(ask_git result)
  execute_process(COMMAND "${git}" -C "${root}" ${ARGN} OUTPUT_VARIABLE output ERROR_QUIET RESULT_VARIABLE status
                          OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(${result} "${output}" PARENT_SCOPE)
  set(${result}_failed ${status} PARENT_SCOPE)
endfunction()

if(NOT base)
  ask_git(head rev-parse HEAD)
  ask_git(base merge-base HEAD "@{upstream}")
  if(base_failed OR base STREQUAL head)
    ask_git(base rev-parse --verify HEAD~1)
  endif()
  if(base_failed)
    message("skipped: there is no earlier commit to compare with")
    return()
  endif()
endif()

ask_git(changed diff --name-only --relative --diff-filter=d "${base}" -- include)
if(changed_failed)
  message(FATAL_ERROR "git can't compare with \"${base}\": give a commit of this repository as base")
endif()
ask_git(added ls-files --others --exclude-standard -- include)
string(REGEX REPLACE "\n" ";" headers "${changed};${added}")
list(FILTER headers INCLUDE REGEX "[.][hi]pp$")
list(FILTER headers EXCLUDE REGEX "hocket/impl/src") # only for separate compilation

set(options -std=c++20 -O0 -fsyntax-only -Wall -Wextra "-I${root}/include")
foreach(folder IN LISTS folders)
  # The compiler searches /usr/include automatically, after its own folders.
  if(folder AND NOT folder STREQUAL "${root}/include" AND NOT folder STREQUAL "/usr/include")
    list(APPEND options -isystem "${folder}")
  endif()
endforeach()

# Sets `result` to whether a translation unit of these lines compiles, and `result`_output to the compiler's output.
function(compiles result lines)
  execute_process(COMMAND "${CMAKE_COMMAND}" -E echo "${lines}" COMMAND "${compiler}" ${options} -x c++ -
                  RESULT_VARIABLE status ERROR_VARIABLE output)
  if(status EQUAL 0)
    set(${result} TRUE PARENT_SCOPE)
  else()
    set(${result} FALSE PARENT_SCOPE)
  endif()
  set(${result}_output "${output}" PARENT_SCOPE)
endfunction()

compiles(has_ucx "#include <ucp/api/ucp.h>")
compiles(has_nvtx "#include <nvtx3/nvToolsExt.h>")
compiles(has_prometheus "#include <prometheus/exposer.h>")
compiles(has_curl "#include <curl/curl.h>\n#if LIBCURL_VERSION_NUM < 0x075800\n#error\n#endif")
compiles(has_archive "#include <archive.h>")
set(failed "")
set(count 0)
foreach(header IN LISTS headers)
  string(REGEX REPLACE "^include/" "" name "${header}")
  if((name MATCHES "/ucx[/.]" AND NOT has_ucx) OR (name MATCHES "/nvtx[.]" AND NOT has_nvtx) OR
     (name MATCHES "/prometheus[.]" AND NOT has_prometheus) OR (name MATCHES "/curl[.]" AND NOT has_curl) OR
     (name MATCHES "/archive[.]" AND NOT has_archive))
    continue() # the library that it wraps is not installed
  endif()
  compiles(good "#include <${name}>\n#include <${name}>")
  math(EXPR count "${count} + 1")
  if(NOT good)
    message("${name} does not compile alone:\n${good_output}")
    list(APPEND failed "${name}")
  endif()
endforeach()
message("${count} headers that differ from ${base} were compiled alone")
if(failed)
  list(JOIN failed ", " failed)
  message(FATAL_ERROR "these headers lack an include: ${failed}")
endif()
