// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recomputed activations: the actions that the pass inserts, their cost and savings, and the proofs.
#include "schedule/refusal.hpp"
#include "schedule/rows.hpp"
#include "schedule/schedules.hpp"

#include <hocket/draw/schedule_svg.hpp>
#include <hocket/draw/schedule_text.hpp>
#include <hocket/schedule/lower/lower.hpp>
#include <hocket/schedule/measured_costs.hpp>
#include <hocket/schedule/prove.hpp>
#include <hocket/schedule/prove_messages.hpp>
#include <hocket/schedule/schedule_trace.hpp>
#include <hocket/schedule/text.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

using namespace pipeline_test;
using namespace hocket::plan::pipeline;

namespace {

static_assert(prove(recompute_activations(schedules::one_forward_one_backward(3, 4))));

int most_held(const schedule& plan) {
  int most = 0;
  for (int rank = 0; rank < plan.ranks(); ++rank) most = std::max(most, peak_activations(plan, rank));
  return most;
}

}  // namespace

TEST_CASE("activations are recomputed right before the gradients that need them, unless they are still stored") {
  const schedule plan = schedules::one_forward_one_backward(2, 2);
  CHECK(rows(recompute_activations(plan)) == "0F0,0F1,0R0,0B0,0R1,0B1\n1F0,1B0,1F1,1B1\n");
  CHECK(rows(recompute_activations(schedules::interleaved(1, 1, 2), {0})) == "0F0,1F0,1B0,0R0,0B0\n");
  CHECK(rows(recompute_activations(schedules::zero_bubble(2, 2))) ==
        "0F0,0F1,0R0,0I0,0W0,0R1,0I1,0W1\n1F0,1I0,1F1,1I1,1W0,1W1\n");
  CHECK(recompute_activations(recompute_activations(plan)) == recompute_activations(plan));
  CHECK(lower(plan, {.recompute_activations = true}) == lower(recompute_activations(plan)));
  pipeline_test::refuses([&] { recompute_activations(plan, {0, 2}); }, "there is no stage 2; the schedule has 2");
  pipeline_test::refuses([&] { recompute_activations(plan, {-1}); }, "there is no stage -1");
}

TEST_CASE("with recomputation every schedule is proven, holds no more, and is no longer than if gradients recompute") {
  int less = 0;
  for_every_schedule(
      [&](const schedule& plan, const sizes& s) {
        CAPTURE(plan.name(), s.ranks, s.microbatches, s.stages_per_rank);
        const schedule again = recompute_activations(plan);
        if (const schedule_proof found = prove(again); !found) FAIL_CHECK(found.message());
        if (!(parse(print(again)) == again)) FAIL_CHECK("print and parse changed it");
        for (const schedule& lowered : {lower(again), lower(again, {.defer_receives = true})}) {
          if (const schedule_proof found = prove(lowered); !found) FAIL_CHECK(found.message());
          for (const int capacity : {0, 1, unbounded}) {
            if (const schedule_proof found = prove_messages(lowered, capacity); !found) FAIL_CHECK(found.message());
          }
        }
        for (int rank = 0; rank < s.ranks; ++rank) {
          if (peak_activations(again, rank) > peak_activations(plan, rank)) FAIL_CHECK("more is stored than before");
        }
        less += most_held(again) < most_held(plan);
        // Recomputation within the gradients cannot overlap with the wait for their inputs.
        const costs without(stage_cost{1, 1, 1}, 0.25);
        const costs within(stage_cost{1, 1.5, 1}, 0.25);
        const costs with(stage_cost{1, 1, 1, 0.5}, 0.25);
        const double apart = run_clock(again, with).makespan, never = run_clock(plan, without).makespan;
        if (run_clock(plan, with).makespan != never) FAIL_CHECK("it takes time without recomputation");
        if (apart > run_clock(plan, within).makespan) FAIL_CHECK("a separate action takes longer");
        if (apart < never) FAIL_CHECK("recomputation takes no time");
        const auto is_again = [](const schedule_action& each) {
          return each.first.kind == schedules::task_kind::recompute;
        };
        if (s.ranks == 1 && apart != never + 0.5 * static_cast<double>(std::count_if(again.rows[0].begin(),
                                                                                     again.rows[0].end(), is_again))) {
          FAIL_CHECK("on one rank the makespan is not the sum");
        }
      },
      5, 12);
  CHECK(less > 300);
}

TEST_CASE("with one stage per rank and whole backward passes, recomputation reduces the peak to one activation") {
  for (const int p : {2, 3, 8}) {
    for (const int m : {2, 8, 32}) {
      CAPTURE(p, m);
      CHECK(most_held(recompute_activations(schedules::gpipe(p, m))) == 1);
      CHECK(most_held(recompute_activations(schedules::one_forward_one_backward(p, m))) == 1);
      // R takes as long as F. All ranks except the last have recomputed when their first gradient arrives.
      const double f = 1, b = 2;
      CHECK(run_clock(recompute_activations(schedules::gpipe(p, m))).makespan ==
            (p + m - 1) * f + m * (f + b) + (p - 1) * b);
    }
  }
}

TEST_CASE("a recomputation that is not between its forward and backward pass is rejected") {
  for (const schedule& plan : {schedules::one_forward_one_backward(4, 8), schedules::interleaved(4, 8, 2),
                               schedules::zero_bubble_v(4, 8), schedules::dual_pipe_v(4, 8)}) {
    const schedule again = recompute_activations(plan);
    CAPTURE(plan.name());
    int tried = 0;
    for (int rank = 0; rank < plan.ranks(); ++rank) {
      for (std::size_t from = 0; from < again.of(rank).size(); ++from) {
        const schedule_action moved = again.of(rank)[from];
        if (moved.first.kind != task_kind::recompute) continue;
        schedule without = again;
        row& actions = without.of(rank);
        actions.erase(actions.begin() + static_cast<std::ptrdiff_t>(from));
        CHECK(prove(without));  // the stage stores these activations
        std::size_t forward = 0, backward = 0;
        for (std::size_t i = 0; i < actions.size(); ++i) {
          for_each_task(actions[i], [&](const task& what) {
            if (what.stage != moved.first.stage || what.microbatch != moved.first.microbatch) return;
            if (what.kind == task_kind::forward) forward = i;
            if (what.kind == task_kind::backward || what.kind == task_kind::input_gradient) backward = i;
          });
        }
        for (std::size_t to = 0; to <= actions.size(); ++to) {
          schedule changed = without;
          changed.of(rank).insert(changed.of(rank).begin() + static_cast<std::ptrdiff_t>(to), moved);
          const bool right = forward < to && to <= backward;
          const schedule_proof found = prove(changed);
          if (found.ok != right) FAIL_CHECK(to_string(moved) << " at " << to << ": " << found.message());
          if (!right && found.what != schedule_violation::before_its_input) FAIL_CHECK(found.message());
          schedule twice = again;
          twice.of(rank).insert(twice.of(rank).begin() + static_cast<std::ptrdiff_t>(to), moved);
          if (prove(twice).what != schedule_violation::done_twice) FAIL_CHECK("twice: " << prove(twice).message());
          ++tried;
        }
        schedule elsewhere = without;
        elsewhere.of((rank + 1) % plan.ranks()).push_back(moved);
        CHECK(prove(elsewhere).what == schedule_violation::wrong_rank);
      }
    }
    CHECK(tried > 100);
  }
}

TEST_CASE("recomputation is drawn and measured") {
  const schedule plan = recompute_activations(schedules::one_forward_one_backward(2, 3));
  CHECK(draw_text(plan) ==
        "rank 0  F0 F1 R0    B0--- F2 R1 B1--- R2 B2---\n"
        "rank 1     F0 B0--- F1 B1--- F2 B2---\n"
        "held 0  1  1  1  1  1  1  1  1  1  1  1  1  1\n"
        "held 1     1  1  1  1  1  1  1  1  1\n");
  const std::string picture = draw_svg(plan);
  CHECK_THAT(picture, Catch::Contains("forward again") && Catch::Contains("at most 1 activations on a rank"));
  CHECK(draw_svg(schedules::one_forward_one_backward(2, 3)).find("forward again") == std::string::npos);
  const costs given(std::vector<stage_cost>{{1, 2, 2, 3}, {4, 5, 5, 0}});
  const costs found = measured_costs(plan, timeline_of(plan, given));
  for (const int stage : {0, 1}) CHECK(found.of(stage) == given.of(stage));
}
