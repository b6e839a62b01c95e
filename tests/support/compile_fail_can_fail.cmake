# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D compile_fail=PROGRAM -D scratch=FOLDER -P compile_fail_can_fail.cmake
#
# Runs compile_fail, which checks the misuses, on cases without a fault, and then on cases with one fault: it must
# distinguish them, and report the fault.

cmake_minimum_required(VERSION 3.25)

# Writes the case `name`, which expects `expectation` and has the lines ARGN.
function(case name expectation)
  list(JOIN ARGN "\n" text)
  string(REPLACE "<semicolon>" ";" text "${text}")
  if(expectation)
    string(PREPEND text "// expect: ${expectation}\n")
  endif()
  file(WRITE "${scratch}/cases/${name}.cpp" "${text}\n")
endfunction()

# Checks the cases written since the last call: the output of compile_fail must match ARGN, in this order, and it must
# fail if `fails`.
function(check fails)
  execute_process(
    COMMAND "${compile_fail}" --cases "${scratch}/cases" --include "${scratch}/include" --most-lines 15
            --batch "${scratch}/batch.cpp" group
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output
  )
  list(JOIN ARGN ".*" expectation)
  if(fails AND status EQUAL 0)
    message(SEND_ERROR "no fault was found:\n${output}")
  elseif(NOT fails AND NOT status EQUAL 0)
    message(SEND_ERROR "cases without a fault were rejected:\n${output}")
  elseif(NOT output MATCHES "${expectation}")
    message(SEND_ERROR "not found: ${expectation}\n${output}")
  endif()
  file(REMOVE_RECURSE "${scratch}/cases/group")
endfunction()

file(REMOVE_RECURSE "${scratch}")

# A library that accepts only small types, and one that never compiles.
file(WRITE "${scratch}/include/library.hpp" [[
#pragma once
template <class T>
void take(const T&) {
  static_assert(sizeof(T) == 1, "only small types are taken");
}
template <bool Small>
struct checked {
  static_assert(Small, "the size is wrong");
};
template <class T>
void measure(const T&) {
  checked<sizeof(T) == 1>();
}
]])
file(WRITE "${scratch}/include/broken.hpp" "#pragma once\nstatic_assert(false, \"this library is broken\");\n")
# A header that cases share.
file(WRITE "${scratch}/cases/setting.hpp" "#pragma once\n#include <library.hpp>\nstruct large { char bytes[2]; };\n")

set(large "#include <library.hpp>" "struct large { char bytes[2]<semicolon> }<semicolon>")
set(setting "#include <setting.hpp>")
set(misuse "void misuse(large x) { take(x)<semicolon> }")
set(measured "void misuse(large x) { measure(x)<semicolon> }")
set(right "void misuse(large) {}")
case(group/first "only small types" ${large} ${misuse})
case(group/second "only small types" ${setting} ${misuse})
case(group/third "only small types" ${setting} ${misuse})
case(group/small "the size is wrong" ${large} ${measured})
case(group/twice "the size is wrong" "// again: the check knows no type" ${large} ${measured})
case(group/macro "no_such_type" "// alone: it defines a macro" "#define TYPE no_such_type" "TYPE x<semicolon>")
check(FALSE "group/third.cpp: error: [^\n]*only small types" "6 cases checked in 3 calls of the compiler, 0 faults")

# A deleted function, which g++ names in its error, and clang in the note after it.
file(WRITE "${scratch}/include/deleted.hpp" [[
#pragma once
struct only_small_types {};
template <class T, class Why = only_small_types>
void give(const T&) = delete;
]])
set(given "#include <deleted.hpp>" "struct large {}<semicolon>" "void misuse(large x) { give(x)<semicolon> }")
case(group/first "Why = (struct )?only_small_types" ${given})
check(FALSE "group/first.cpp: error: [^\n]*deleted function[^\n]*only_small_types" " 0 faults")
case(group/first "only large types" ${given})
check(TRUE "group/first.cpp: the first error is not the one that is expected" "expected: only large types" " 1 faults")

# A case without an error.
case(group/first "only small types" ${large} ${misuse})
case(group/right "only small types" ${large} ${right})
check(TRUE "group/right.cpp: it compiles, and should not\n  expected: only small types\n  printed: nothing"
      "2 cases [^\n]* 1 faults")

case(group/right "only small types" "// again: it may be" ${large} ${right})
check(TRUE "group/right.cpp: it compiles, and should not" " 1 faults")

case(group/right "only small types" "// alone: it need not" ${large} ${right})
check(TRUE "group/right.cpp: it compiles, and should not" " 1 faults")

# A case with another error, for which a later error does not compensate.
case(group/first "only small types" ${large} ${misuse})
case(group/other "only one at a time" ${large} ${misuse})
check(TRUE "group/other.cpp: the first error is not the one that is expected"
      "expected: only one at a time\n  printed:" "only small types are taken" " 1 faults")

case(group/second "only small types" ${large} "no_such_type x<semicolon>" ${misuse})
check(TRUE "group/second.cpp: the first error is not the one that is expected" "no_such_type")

# A case whose error is reported for another one, with the same types.
set(shared "#include <library.hpp>" "void misuse(int x) { take(x)<semicolon> }")
case(group/first "only small types" ${shared})
case(group/swallowed "only small types" ${shared})
check(TRUE "group/swallowed.cpp: it has no error in the batch" "needs other types"
      "expected: only small types\n  printed:" "only small types are taken" " 1 faults")

# A case with too many lines: an error for each type.
set(misuses ${misuse} "void misuse(int x) { take(x)<semicolon> }" "void misuse(long x) { take(x)<semicolon> }")
case(group/long "only small types" ${large} ${misuses})
check(TRUE "group/long.cpp: the compiler printed [0-9]+ lines, and should print at most 15" " 1 faults")

# An error that is unrelated to the cases.
case(group/first "only small types" ${large} ${misuse})
case(group/second "only small types" "#include <broken.hpp>" ${large} ${misuse})
check(TRUE "this error belongs to none of its cases\n  printed:\n" "this library is broken" " 1 faults")

# Cases without a required line.
case(group/silent "" ${large} ${misuse})
check(TRUE "group/silent.cpp: it lacks a line .// expect: REGEX.")

case(group/macro "no_such_type" "#define TYPE no_such_type" "TYPE x<semicolon>")
check(TRUE "group/macro.cpp needs a line .// alone: why." "#define TYPE no_such_type")
