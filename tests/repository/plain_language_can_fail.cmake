# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D program=hocket.tests.plain_language -D scratch=FOLDER -P plain_language_can_fail.cmake
#
# The test of plain language must report phrases in comments, strings and pages with an alternative, and ignore code.

set(phrases "${CMAKE_CURRENT_LIST_DIR}/plain_language/phrases.txt")

function(check path content expected)
  file(REMOVE_RECURSE "${scratch}")
  file(WRITE "${scratch}/${path}" "${content}")
  execute_process(
    COMMAND "${program}" "${phrases}" "${scratch}" RESULT_VARIABLE code OUTPUT_VARIABLE printed ERROR_VARIABLE printed
  )
  if(expected STREQUAL "")
    if(NOT code EQUAL 0)
      message(FATAL_ERROR "${path} is rejected, and has no such phrase:\n${content}\n${printed}")
    endif()
  elseif(code EQUAL 0 OR NOT printed MATCHES "${expected}")
    message(FATAL_ERROR "${path} must be rejected (${expected}):\n${content}\n${printed}")
  endif()
endfunction()

# Comments, also across lines and in upper case, and strings, also those that the compiler joins.
check("include/hocket/x.hpp" "int a;\n/// Every rank but for one.\n" "x.hpp:2: \"but for\": write \"except\"")
check("include/hocket/x.hpp" "/// Every rank but\n  /// for one.\n" "x.hpp:1: \"but for\"")
check("include/hocket/x.ipp" "/* Whom\n it concerns */\n" "x.ipp:1: \"whom\"")
check("tools/x.cpp" "auto a = \"the call goes\"\n  \" on\";\n" "tools/x.cpp:1: \"goes on\"")
check("examples/x.cu" "auto a = R\"(\n  in vain)\";\n" "examples/x.cu:1: \"in vain\"")
check("include/hocket/x.cuh" "auto a = 1'000; auto b = '\"'; // in vain\n" "x.cuh:1: \"in vain\"")
# Pages.
check("docs/x.md" "Polls in\nvain.\n" "docs/x.md:1: \"in vain\"")
check("README.md" "```\nx\n```\nNobody waits.\n" "README.md:4: \"nobody\": write \"no rank, no caller\"")
# Code, parts of words, and words on both sides of a full stop.
check("include/hocket/x.hpp" "int nobody, whom; // see `whom` and nobody_else\n" "")
check("include/hocket/x.hpp" "// The call goes. On every rank.\nint a; // but\nint b; // for\n" "")
check("docs/x.md" "Call `nobody()`.\n\n    int whom;\n\n~~~\nin vain\n~~~\n" "")
