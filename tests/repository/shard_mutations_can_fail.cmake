# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D root=REPOSITORY -D compiler=COMPILER -D scratch=FOLDER -P shard_mutations_can_fail.cmake
#
# Removes tests of a rule, of a conversion and of sentences: shard_mutations.cmake must report each of them.

cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${scratch}")

# Removes the lines that match `lost` from `static`, and the misuse `lost_misuse`: then shard_mutations.cmake, with the
# refusals that match `only`, must print `expectation`.
function(check lost lost_misuse only expectation)
  file(READ "${root}/tests/static/shard_rules.static.cpp" text)
  if(lost)
    string(REGEX REPLACE "\n[^\n]*${lost}[^\n]*" "" text "${text}")
  endif()
  file(WRITE "${scratch}/shard_rules.static.cpp" "${text}")
  file(REMOVE_RECURSE "${scratch}/compile_fail")
  file(COPY "${root}/tests/compile_fail" DESTINATION "${scratch}")
  if(lost_misuse)
    file(REMOVE "${scratch}/compile_fail/${lost_misuse}")
  endif()
  if(ARGN) # a misuse, and its new expectation
    list(GET ARGN 0 misuse)
    list(GET ARGN 1 expected)
    file(READ "${scratch}/compile_fail/${misuse}" text)
    string(REGEX REPLACE "// expect: [^\n]*" "// expect: ${expected}" text "${text}")
    file(WRITE "${scratch}/compile_fail/${misuse}" "${text}")
  endif()
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -D "root=${root}" -D "compiler=${compiler}" -D "scratch=${scratch}/mutants"
            -D "static=${scratch}/shard_rules.static.cpp" -D "compile_fail=${scratch}/compile_fail" -D "only=${only}"
            -P "${CMAKE_CURRENT_LIST_DIR}/shard_mutations.cmake"
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output
  )
  if(expectation STREQUAL "" AND NOT status EQUAL 0)
    message(SEND_ERROR "a missing test was reported, but none is missing:\n${output}")
  elseif(NOT expectation STREQUAL "" AND (status EQUAL 0 OR NOT output MATCHES "${expectation}"))
    message(SEND_ERROR "not found: ${expectation}\n${output}")
  endif()
endfunction()

check("" "" partial_times_partial "")
check(partial_times_partial "" partial_times_partial "without this refusal: shard/rules.hpp:[0-9]+: .*it compiled")
check("static_assert.agrees.redistributions" "" made_partial "without this refusal: shard/conversion_rules.hpp")
check("" shard/norm_over_two_meshes.cpp partial_times_partial "expect only this sentence.*call squared_norm for each")
check("" shard/partial_by_two_reductions.cpp partial_times_partial "for each place that contains it: partial results of two")
check("" "" "go in braces: mesh" "")
check("" "" "go in braces: mesh" "without this refusal: mesh/mesh_diagnostics.hpp" mesh/extents_without_braces.cpp
      "go in braces: mesh|error: ")
