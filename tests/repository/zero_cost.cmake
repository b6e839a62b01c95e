# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D root=REPOSITORY -D compiler=COMPILER -D objdump=OBJDUMP -D scratch=FOLDER [-D headers=FOLDER]
#       -P zero_cost.cmake
#
# Decisions by types have no cost at run time: compiles zero_cost/pairs.cpp like a user, with -O2, and compares the
# instructions of each typed::X with those of bare::X. They may differ only in the names of registers and in addresses of
# jumps, constants and source locations. Called functions must have the same names. `headers`, if given, come first.

cmake_minimum_required(VERSION 3.25)

# Functions whose typed form may have more instructions, and how many; the comments in pairs.cpp state why. They must
# make the same calls as the functions written by hand.
set(allowed_unknown_gather 13)
set(allowed_unknown_scatter 14)
set(allowed_product 6)
# The same instructions in another order:
set(allowed_reduce 0)
set(allowed_gather 0)
set(allowed_scatter 0)

file(MAKE_DIRECTORY "${scratch}")
set(first "")
if(headers)
  set(first -I "${headers}")
endif()
execute_process(COMMAND "${compiler}" -std=c++20 -O2 ${first} -I "${root}/include" -c
                        "${CMAKE_CURRENT_LIST_DIR}/zero_cost/pairs.cpp" -o "${scratch}/pairs.o"
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${objdump}" -dr --no-show-raw-insn "${scratch}/pairs.o" OUTPUT_VARIABLE text
                COMMAND_ERROR_IS_FATAL ANY)

# One list element per function: mangled names have no semicolons and no brackets.
string(REPLACE ";" "," text "${text}")
string(REPLACE "\n\n" ";" functions "${text}")
set(names "")
foreach(function IN LISTS functions)
  if(NOT function MATCHES "<_ZN(5typed|4bare)[0-9]+([a-z_]+)E[^>.]*(\\.[a-z]*)?[^>]*>:\n(.*)$")
    continue()
  endif()
  set(side ${CMAKE_MATCH_1})
  set(name ${CMAKE_MATCH_2})
  set(part "${CMAKE_MATCH_3}")
  set(body "\n${CMAKE_MATCH_4}\n")
  string(REGEX REPLACE "#[^\n]*" "" body "${body}")
  # Relocations are in the next line.
  string(REGEX REPLACE "[0-9a-f]+ <[^\n]*\n[ \t]*[0-9a-f]+: R_" "<here>\nR_" body "${body}")
  string(REGEX REPLACE "\n[ \t]*[0-9a-f]+:[ \t]*" "\n" body "${body}")
  string(REGEX REPLACE "[0-9a-f]+ <_ZN(5typed|4bare)[^>]*>" "<here>" body "${body}")
  string(REGEX REPLACE "[0-9a-f]+ <" "<" body "${body}")
  string(REGEX REPLACE "(R_[A-Z0-9_]*)[ \t]+\\.[^\n]*" "\\1 <here>" body "${body}")
  # Instructions for alignment.
  string(REGEX REPLACE "\n(data16 |cs )*(nop[wl]?|xchg[ \t]+%ax,%ax)[^\n]*" "" body "${body}")
  string(REGEX REPLACE "%[xyz]mm[0-9]+" "%vector" body "${body}")
  string(REGEX REPLACE "%(r[0-9]+d|e[abcd]x|e[sd]i|ebp)" "%bits32" body "${body}")
  string(REGEX REPLACE "%(r[0-9]+[bw]|[abcd][xhl]|[sd]il?|bpl?)" "%bits16" body "${body}")
  string(REGEX REPLACE "%(r[0-9]+|r[abcd]x|r[sd]i|rbp)" "%bits64" body "${body}")
  string(REGEX REPLACE "[ \t]+" " " body "${body}")
  string(REGEX REPLACE "\n+" "\n" body "${body}")
  list(APPEND names ${name})
  string(APPEND body_${side}_${name} "${part}${body}")
endforeach()
list(REMOVE_DUPLICATES names)
if(names STREQUAL "")
  message(FATAL_ERROR "no functions were found in pairs.o")
endif()

set(offences 0)
foreach(name IN LISTS names)
  foreach(side IN ITEMS 5typed 4bare)
    string(REGEX MATCHALL "\n[a-z]" instructions "${body_${side}_${name}}")
    list(LENGTH instructions count_${side})
    file(WRITE "${scratch}/${name}.${side}.txt" "${body_${side}_${name}}")
  endforeach()
  set(counts "${count_5typed} instructions, ${count_4bare} by hand")
  if(body_5typed_${name} STREQUAL "${body_4bare_${name}}")
    message("${name}: equal, ${counts}")
    continue()
  endif()
  math(EXPR more "${count_5typed} - ${count_4bare}")
  string(REGEX MATCHALL "(call|jmp) <_Z[^>.]*|R_[^\n]*PLT[^\n]* _Z[^\n]*" calls "${body_4bare_${name}}")
  set(calls_all TRUE)
  foreach(called IN LISTS calls)
    string(FIND "${body_5typed_${name}}" "${called}" at)
    if(at EQUAL -1)
      set(calls_all FALSE)
    endif()
  endforeach()
  if(DEFINED allowed_${name} AND calls_all AND more GREATER_EQUAL 0 AND more LESS_EQUAL allowed_${name})
    message("${name}: ${counts}; at most ${allowed_${name}} more are allowed")
    continue()
  endif()
  message("${name} differs: ${counts}; compare ${scratch}/${name}.*.txt")
  math(EXPR offences "${offences} + 1")
endforeach()
if(offences GREATER 0)
  message(FATAL_ERROR "${offences} typed functions differ from those written by hand")
endif()
