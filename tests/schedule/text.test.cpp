// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The text form: parse(print(plan)) is the plan, and an invalid text is rejected with line and column.
#include "schedule/refusal.hpp"
#include "schedule/schedules.hpp"

#include <hocket/schedule/text.hpp>

#include <catch2/catch.hpp>

#include <string>

using namespace pipeline_test;
using namespace hocket::plan::pipeline;

TEST_CASE("parse(print(plan)) is the plan, for every schedule") {
  for_every_schedule([&](const schedule& plan, const sizes&) {
    if (!(parse(print(plan)) == plan)) FAIL_CHECK("print and parse changed it:\n" << print(plan));
  });
}

TEST_CASE("print gives the text form of a schedule") {
  CHECK(print(one_forward_one_backward(2, 3)) ==
        "# schedule: one_forward_one_backward\n"
        "# placement: loop\n"
        "# stages: 2\n"
        "# microbatches: 3\n"
        "0F0,0F1,0B0,0F2,0B1,0B2\n"
        "1F0,1B0,1F1,1B1,1F2,1B2\n");
  CHECK(to_string(overlapped(forward(7, 4), backward(0, 0))) == "(7F4;0B0)OVERLAP_F_B");
  schedule own("own", placement::given({0, 1, 0}), 1);
  own.rows = {{forward(0, 0), forward(2, 0)}, {}};
  CHECK(print(own) == "# schedule: own\n# placement: given 0,1,0\n# stages: 3\n# microbatches: 1\n0F0,2F0\n,\n");
  CHECK(parse(print(own)) == own);
}

TEST_CASE("every kind of task has a text that parse reads back") {
  for (int i = 1; i < task_kinds; ++i) {
    const auto what = static_cast<task_kind>(i);
    schedule plan("one", placement::loop(1), 8);
    plan.of(0) = {{{what, 0, has_microbatch(what) ? 7 : -1}, {}}};
    CAPTURE(print(plan));
    CHECK(parse(print(plan)) == plan);
  }
}

TEST_CASE("parse reads a table without a header, with blanks, empty cells, empty lines and both kinds of line ends") {
  const schedule plan = parse("0F0, 0F1 ,,0B0,0B1\r\n\n # a remark\n,1F0,1F1,1B0,\t1B1,,\n");
  CHECK(plan.ranks() == 2);
  CHECK(plan.microbatches == 2);
  CHECK(plan.placement.rank_of(1, 0) == 1);
  CHECK(plan.rows == gpipe(2, 2).rows);
  CHECK(parse("0F0,1F0,1B0,0B0").stages() == 2);
}

TEST_CASE("parse rejects an invalid text with line and column") {
  const auto refuses = [](const std::string& text, const std::string& says) {
    CAPTURE(text);
    pipeline_test::refuses([&] { parse(text); }, says);
  };
  refuses("", "line 1, column 1: there is no row");
  refuses("# microbatches: 2\n", "there is no row");
  refuses(",", "line 1, column 2: a schedule needs at least one stage");
  refuses("# stages: 0\n,", "line 1, column 3: a schedule needs at least one stage");
  refuses("# placement: loop\n# microbatches: 1000000\n# stages: 100\n0F0,99F0",
          "line 2, column 3: a schedule has at most 134217728 actions; 100");
  refuses("0F0,0X0", "line 1, column 6: no such action; after the stage there must be F, B, I, W");
  refuses("0F0\n1F0,F1", "line 2, column 5: expected a number here: the stage");
  refuses("0F", "line 1, column 3: expected a number here: the microbatch");
  refuses("0F0 0B0", "line 1, column 5: a comma or the end of the line must follow an action");
  refuses("0UNSHARD1", "line 1, column 9: a comma or the end of the line");
  refuses("0F99999999999999999999", "line 1, column 3: the microbatch must be less than 1048576");
  refuses("(0F0,0B0)OVERLAP_F_B", "line 1, column 5: a ';' must follow the first of two overlapping actions");
  refuses("(0F0;0B0)", "line 1, column 9: ')OVERLAP_F_B' must follow the second");
  refuses("# placement: ring\n0F0", "line 1, column 14: no such placement; use loop, v, two_directions, or given");
  refuses("# placement: v 3\n0F0", "line 1, column 16: expected the end of the line here");
  refuses("# stages: x\n0F0", "line 1, column 11: expected a number here: the stages");
  refuses("# placement: v\n# stages: 2\n0F0\n1F0", "this placement has 4 stages on 2 rows, but '# stages:' is 2");
  refuses("# placement: loop\n# stages: 3\n0F0\n1F0", "3 stages cannot be divided evenly among 2 rows");
  refuses("# placement: given 0,1\n0F0", "there are 1 rows; the placement needs one for each of its 2 ranks");
  refuses("# microbatches: 2\n0F2", "microbatch 2 occurs; '# microbatches: 2' allows numbers up to 1");
  refuses("# stages: 1\n1F0", "stage 1 occurs; '# stages: 1' allows numbers up to 0");
  refuses("# placement: given 0,2\n0F0\n1F0", "the placement gives no stage to rank 1");
  refuses("# placement: two_directions\n# microbatches: 3\n0F0\n1F0", "an even number of microbatches");
  refuses("0F0\n0F1", "stage 0 lies on ranks 0 and 1");
  refuses("0F0,2F0", "line 1, column 5: no rank computes stage 1");
}

TEST_CASE("an error found at the end of the text is reported with the line and column of its cause") {
  const auto refuses = [](const std::string& text, const std::string& says) {
    CAPTURE(text);
    pipeline_test::refuses([&] { parse(text); }, says);
  };
  refuses(",\n0F0,0B0", "line 1, column 1: rank 0 computes nothing");
  refuses("00UNSHARD\n0B0", "line 1, column 1: rank 0 computes nothing");
  refuses("0F0,0B0\n\n  ,\n", "line 3, column 3: rank 1 computes nothing");
  refuses("0UNSHARD,1F0", "line 1, column 1: no rank computes stage 0");
  refuses("# stages: 3\n0F0,1F0", "line 1, column 3: no rank computes stage 2");
  refuses("0F0,0B0\n0F0,1F0,1B0\n2F0,2B0\n3F0,3B0",
          "line 2, column 1: stage 0 lies on ranks 0 and 1; each stage must lie on one rank");
  refuses("0F0,1F1\n1F0,0F1",
          "line 2, column 1: stage 1 lies on ranks 0 and 1: write '# placement: two_directions' if this is intended");
  refuses("0F0,5F0,5F1\n1F0\n# stages: 4", "line 1, column 5: stage 5 occurs");
  refuses("0F0,0F5\n0F5,0B0\n# microbatches: 5", "line 1, column 5: microbatch 5 occurs");
  refuses("0F0\n# placement: loop\n# stages: 3\n1F0",
          "line 3, column 3: 3 stages cannot be divided evenly among 2 rows");
  refuses("0F0\n 2F0\n# placement: loop\n", "line 3, column 3: 3 stages cannot be divided evenly among 2 rows");
  refuses("# placement: v\n# stages: 2\n0F0\n1F0", "line 2, column 3: this placement has 4 stages");
  refuses("# placement: given 0,1\n0F0", "line 1, column 3: there are 1 rows");
  refuses("# placement: given 0,2\n0F0\n1F0", "line 1, column 3: the placement gives no stage to rank 1");
  refuses("# placement: two_directions\n0F0\n0F2", "line 1, column 3: two directions need an even number");
}

TEST_CASE("parse rejects a header line with a typing error, but not a remark") {
  const auto refuses = [](const std::string& text, const std::string& says) {
    CAPTURE(text);
    pipeline_test::refuses([&] { parse(text + "\n0F0,0B0"); }, says);
  };
  refuses("# stages 2", "line 1, column 9: a ':' must follow here, as in '# stages:'");
  refuses("# placement loop", "line 1, column 12: a ':' must follow here, as in '# placement:'");
  refuses("# stages : 2", "line 1, column 9: a ':' must follow here");
  refuses("# schedule", "line 1, column 11: a ':' must follow here");
  refuses("\n # microbatch: 1", "line 2, column 4: this must be '# microbatches:'");
  refuses("# micro_batches: 1", "this must be '# microbatches:'");
  refuses("# Stages: 1", "this must be '# stages:'");
  refuses("# stage: 1", "this must be '# stages:'");
  refuses("# PLACMENT: loop", "this must be '# placement:'");
  refuses("# shedule: own", "this must be '# schedule:'");
  refuses("# placement: given 0\n# placement: given 0",
          "line 2, column 3: a second line '# placement:'; the first is line 1");
  refuses("# stages: 1\n# stages: 1", "a second line '# stages:'");
  refuses("# schedule: a\n\n# schedule: a", "line 3, column 3: a second line '# schedule:'; the first is line 1");
  for (const char* remark : {"#", "#:", "# the stages: two", "# note: by hand", "# state: draft", "# stage 2 is long",
                             "## microbatches, in the order of arrival", "# pages: 7", "# 3 stages"}) {
    CAPTURE(remark);
    CHECK(parse(std::string(remark) + "\n0F0,0B0").rows == parse("0F0,0B0").rows);
  }
}

TEST_CASE("print and parse preserve the name of a schedule, and invalid names are rejected") {
  schedule plan = gpipe(2, 2);
  for (const char* name : {"", "a", "two words", "a:b # c", "a\tb"}) {
    plan.rename(name);
    CAPTURE(name);
    CHECK(parse(print(plan)) == plan);
  }
  for (const char* name : {"a\nb", "a\n", "a\r", "a\rb", " a", "a ", "\ta", "a\t", " "}) {
    CAPTURE(name);
    pipeline_test::refuses([&] { plan.rename(name); }, "one line without blanks at its ends");
    pipeline_test::refuses([&] { schedule(name, placement::loop(1), 1); }, "one line without blanks at its ends");
  }
  CHECK(parse("# schedule: \ttwo words \t\r\n0F0").name() == "two words");
  pipeline_test::refuses([] { parse("# schedule: a\rb\n0F0"); },
                         "line 1, column 14: a name must not have a carriage return in it");
  pipeline_test::refuses([] { placement::given({0, 2, 0}); }, "rank without a stage: found 1");
}
