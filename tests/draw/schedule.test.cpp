// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Drawings have one cell per action, at its time, and nothing that a browser would have to fetch.
#include "draw/count.hpp"
#include "draw/picture.hpp"
#include "schedule/refusal.hpp"
#include "schedule/schedules.hpp"

#include <hocket/draw/schedule_comparison.hpp>
#include <hocket/draw/schedule_svg.hpp>
#include <hocket/draw/schedule_text.hpp>
#include <hocket/schedule/measured_costs.hpp>

#include <catch2/catch.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

using namespace pipeline_test;
using namespace hocket::plan::pipeline;
using draw_test::count;

TEST_CASE("a schedule is drawn as text") {
  CHECK(draw_text(one_forward_one_backward(2, 3)) ==
        "rank 0  F0 F1       B0--- F2 B1---    B2---\n"
        "rank 1     F0 B0--- F1 B1--- F2 B2---\n"
        "held 0  1  2  2  2  2  2  2  2  2  1  1  1\n"
        "held 1     1  1  1  1  1  1  1  1  1\n");
  CHECK(draw_text(interleaved(2, 2, 2)) ==
        "rank 0  F0a F1a F0b F1b         B0b----     B1b---- B0a---- B1a----\n"
        "rank 1      F0a F1a F0b B0b---- F1b B1b---- B0a---- B1a----\n"
        "held 0  1   2   3   4   4   4   4   4   3   3   3   2   2   1   1\n"
        "held 1      1   2   3   3   3   3   3   3   2   2   1   1\n");
  // Numbers of two digits do not touch, although the columns of long actions would be narrower.
  CHECK_THAT(draw_text(gpipe(1, 12), timeline_of(gpipe(1, 12)), 0.5), Catch::Contains("9  9  10 10 11 11 12 12 12"));
  CHECK_THAT(draw_text(dual_pipe(2, 4)), Catch::Contains("&B"));
  CHECK_THAT(draw_text(dual_pipe(2, 4)), Catch::Contains("F2'"));
  CHECK(draw_text(gpipe(1, 2), costs(stage_cost{0, 0, 0})) == "nothing to draw\n");

  const schedule longer = gpipe(2, 300);
  const std::string cut = draw_text(longer, timeline_of(longer), 0, 10);
  CHECK_THAT(cut, Catch::Contains(" ...\n"));
  CHECK(cut.size() < 300);
}

TEST_CASE("a schedule is drawn as SVG") {
  for (const schedule& plan : {one_forward_one_backward(4, 8), interleaved(4, 8, 2), zero_bubble_v(3, 7),
                               dual_pipe_v(2, 6), dual_pipe(4, 8)}) {
    const std::string picture = draw_svg(plan);
    CAPTURE(plan.name());
    CHECK(count(picture, "<g class=\"action\">") == plan.length());
    CHECK(count(picture, "<g ") == count(picture, "</g>"));
    CHECK(count(picture, "class=\"memory\"") == static_cast<std::size_t>(plan.ranks()));
    CHECK(count(picture, "http") == 1);  // the XML namespace
    CHECK(draw_test::malformed(picture) == "");
    CHECK(draw_test::unfit_for_pages(picture) == "");
    CHECK(draw_test::faint_words(picture) == "");
    CHECK_THAT(picture, Catch::EndsWith("</svg>\n"));
  }
  const std::string picture =
      draw_svg(gpipe(2, 2), costs(stage_cost{1, 1, 1}), {.until = 20, .unit = "ms", .heading = "a < b"});
  CHECK_THAT(picture, Catch::Contains("a &lt; b") && Catch::Contains("20 ms"));
  CHECK_THAT(picture,
             Catch::Contains("2 ranks, 2 stages, 2 microbatches: 9 ms long, ranks idle for 33.3 % of it, at most "
                             "2 activations on a rank"));
}

TEST_CASE("a plan and its run are drawn in one picture") {
  const schedule plan = one_forward_one_backward(2, 3);
  const timeline planned = timeline_of(plan);
  timeline run = planned;
  for (timed_schedule_action& each : run) {  // the gradient of the last stage is late, and so is all that follows
    const bool late = each.rank == 1 ? each.begin >= 2 : each.begin >= 4;
    each.begin += late;
    each.end += late;
  }
  CHECK(draw_comparison_text(plan, planned, run) ==
        "rank 0 plan  F0 F1       B0--- F2 B1---    B2---\n"
        "       run   F0 F1          B0--- F2 B1---    B2---\n"
        "rank 1 plan     F0 B0--- F1 B1--- F2 B2---\n"
        "       run      F0    B0--- F1 B1--- F2 B2---\n");
  CHECK_THAT(draw_comparison_text(plan, planned, run, 0, 4), Catch::Contains(" ...\n"));
  CHECK(draw_comparison_text(plan, {}, run) == "nothing to draw\n");

  const std::string picture = draw_comparison_svg(plan, planned, run, {.unit = "ms"});
  CHECK(count(picture, "<g class=\"action\">") == 2 * plan.length());
  CHECK(draw_test::malformed(picture) == "");
  CHECK(draw_test::unfit_for_pages(picture) == "");
  CHECK(draw_test::faint_words(picture) == "");
  CHECK(count(picture, "<g ") == count(picture, "</g>"));
  CHECK(count(picture, "text-anchor=\"end\">13 ms<") == 2);  // one axis for both: the run is longer
  CHECK_THAT(picture,
             Catch::Contains("one_forward_one_backward, planned") && Catch::Contains("one_forward_one_backward, run"));
  CHECK_THAT(picture, Catch::Contains("12 ms long") && Catch::Contains("13 ms long"));
}

TEST_CASE("measured_costs computes the costs of stages from a run") {
  const std::vector<stage_cost> each = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
  const costs given(each, 0.5);
  const costs found = measured_costs(zero_bubble(3, 4), timeline_of(zero_bubble(3, 4), given), 0.5);
  for (int stage = 0; stage < 3; ++stage) CHECK(found.of(stage) == each[static_cast<std::size_t>(stage)]);
  CHECK(found.hop(0, 1) == 0.5);
  const costs whole = measured_costs(gpipe(3, 4), timeline_of(gpipe(3, 4), given));
  CHECK(whole.of(0) == stage_cost{1, 2.5, 2.5});
  pipeline_test::refuses([] { measured_costs(gpipe(3, 4), {}); }, "measured_costs: the timeline is empty");
}
