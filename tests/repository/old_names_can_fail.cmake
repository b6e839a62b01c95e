# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D program=hocket.tests.old_names -D scratch=FOLDER -P old_names_can_fail.cmake
#
# The test of old names must report them in code with file, line and new name, and ignore ordinary words.

set(names "${CMAKE_CURRENT_LIST_DIR}/old_names/names.txt")

function(check path content expected)
  file(REMOVE_RECURSE "${scratch}")
  file(WRITE "${scratch}/${path}" "${content}")
  execute_process(
    COMMAND "${program}" "${names}" "${scratch}" RESULT_VARIABLE code OUTPUT_VARIABLE printed ERROR_VARIABLE printed
  )
  if(expected STREQUAL "")
    if(NOT code EQUAL 0)
      message(FATAL_ERROR "${path} is rejected, and has no old name:\n${content}\n${printed}")
    endif()
  elseif(code EQUAL 0 OR NOT printed MATCHES "${expected}")
    message(FATAL_ERROR "${path} must be rejected (${expected}):\n${content}\n${printed}")
  endif()
endfunction()

# Single words, qualified names, and words that are refused only in some folders.
check("include/hocket/x.hpp" "// a line\nint whom_to_blame();\n" "include/hocket/x.hpp:2: whom_to_blame is now find_culprit")
check("tools/x.cpp" "using ranks = communicator<hocket::local::wire>;\n" "tools/x.cpp:1: local::wire is now domain")
check("examples/x.cpp" "auto a = hocket::plan ::\n  any(b);\n" "examples/x.cpp:1: plan::any is now any_algorithm")
check("include/hocket/collective/x.hpp" "struct x {\n  int job;\n};\n" "x.hpp:2: job is now spec")
check("docs/x.md" "Say `with(observe(step_event))`.\n" "docs/x.md:1: step_event is now completed_step")
check("docs/x.md" "text\n\n    plan::goal x;\n" "docs/x.md:3: plan::goal is now collective")
check("docs/x.md" "```cpp\nplan::verb x;\n```\n" "docs/x.md:2: verb is now action_kind")
check("docs/x.md" "~~~\nplan::verb x;\n~~~\n" "docs/x.md:2: verb is now action_kind")
check("tools/x.cpp" "struct standing {};\n" "tools/x.cpp:1: standing is now")
check("docs/x.md" "    #include <hocket/communicator/split.hpp>\n" "x.md:1: hocket/communicator/split is now hocket/group/split")
check("examples/x.cpp" "#include <hocket/communicator/split.hpp>\n" "x.cpp:1: hocket/communicator/split is now")
# Names after literals and comments that could hide them.
check("include/hocket/x.hpp" "auto a = 1'000; int kept_objects;\n" "x.hpp:1: kept_objects is now")
check("include/hocket/x.hpp" "auto a = R\"(\")\"; int kept_objects;\n" "x.hpp:1: kept_objects is now")
check("include/hocket/x.hpp" "auto a = \"\\\"\"; /* \" */ int kept_objects;\n" "x.hpp:1: kept_objects is now")
# Words with their ordinary meaning, and parts of other words.
check("include/hocket/x.hpp" "// a wire, a port, plan::any and whom_to_blame\nint kept_objects_of_mine;\n" "")
check("include/hocket/x.hpp" "auto a = with(wire<bfloat16>); int port = store.port(); auto b = \"kept_objects\";\n" "")
check("tools/x.cpp" "#include <any>\nint work = 1; std::any any;\n" "")
check("docs/x.md" "What is on the wire: `wire<bfloat16>` and step_event in prose.\n" "")
