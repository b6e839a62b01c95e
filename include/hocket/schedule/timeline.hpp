// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The times of a schedule's actions as a list, and the number of activations that ranks hold over time. The times are
/// those of schedule_trace.hpp, or measured in a run (pipeline/measured.hpp). Drawings show either list.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/schedule/costs.hpp>
#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/schedule_trace.hpp>

#include <cstddef>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

/// Actions with their times; those of one rank are in the order of its row.
using timeline = std::vector<timed_schedule_action>;

/// Returns the timeline of `plan` on a virtual clock: see `trace`.
inline timeline timeline_of(const schedule& plan, const costs& cost = costs{}) {
  timeline all;
  all.reserve(plan.length());
  trace(plan, cost, [&](const timed_schedule_action& each) { all.push_back(each); });
  return all;
}

/// Number of activations that a rank holds from `time` until the next change.
struct activations_held {
  double time = 0;  ///< in the unit of the timeline
  int held = 0;     ///< number of activations
};

/// Returns the memory curve of every rank: one more when a forward pass or a recompute begins; one less when a backward
/// pass or weight gradient ends, or a forward pass whose activation is recomputed later. See `peak_activations`.
inline std::vector<std::vector<activations_held>> memory_curves(const schedule& plan, const timeline& times) {
  std::vector<std::vector<activations_held>> curves(plan.rows.size());
  std::vector<std::vector<char>> recomputed;
  for (const row& actions : plan.rows) recomputed.push_back(detail::recomputed_forwards(plan, actions));
  for (const timed_schedule_action& at : times) {
    auto& curve = curves[static_cast<std::size_t>(at.rank)];
    const std::vector<char>& is_recomputed = recomputed[static_cast<std::size_t>(at.rank)];
    const auto change = [&](double time, int by) {
      curve.push_back({time, (curve.empty() ? 0 : curve.back().held) + by});
    };
    for_each_task(at.what, [&](const task& what) {
      if (what.kind == task_kind::forward || what.kind == task_kind::recompute) change(at.begin, 1);
    });
    for_each_task(at.what, [&](const task& what) {
      const bool is_dropped = what.kind == task_kind::forward && !is_recomputed.empty() &&
                              is_recomputed[plan.index(what.stage, what.microbatch)];
      if (is_dropped || what.kind == task_kind::backward || what.kind == task_kind::weight_gradient) change(at.end, -1);
    });
  }
  return curves;
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
