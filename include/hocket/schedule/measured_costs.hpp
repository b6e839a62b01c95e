// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The costs of stages as measured in a run: for `greedy`, and to compare a run with its plan.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/schedule/costs.hpp>
#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/schedule_action.hpp>
#include <hocket/schedule/timeline.hpp>

#include <cstddef>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

/// Returns the mean times of each stage in a timeline of all ranks, in its unit; 0 for tasks that do not occur. Half of
/// a whole backward pass counts for each gradient, and half of a pair for each of its tasks. The result contains
/// `hops`, because a run does not show them. Raises `invalid_argument` if the timeline is empty, as it is before the
/// first step: with costs of 0 for all stages, any schedule would be the best.
inline costs measured_costs(const schedule& plan, const timeline& run, link_times hops = {}) {
  if (run.empty() && plan.length() > 0) {
    raise(errc::invalid_argument, "measured_costs: the timeline is empty; run a step of the schedule first");
  }
  struct mean {
    double sum = 0;
    int count = 0;
    void add(double time) {
      sum += time;
      ++count;
    }
    double value() const { return count == 0 ? 0 : sum / count; }
  };
  struct means {
    mean forward, input_gradient, weight_gradient, recompute;
  };
  std::vector<means> found(static_cast<std::size_t>(plan.stages()));
  for (const timed_schedule_action& each : run) {
    const double time = (each.end - each.begin) / (each.what.is_pair() ? 2 : 1);
    for_each_task(each.what, [&](const task& what) {
      means& of = found[static_cast<std::size_t>(what.stage)];
      const double share = what.kind == task_kind::backward ? time / 2 : time;
      if (what.kind == task_kind::forward) of.forward.add(share);
      if (what.kind == task_kind::recompute) of.recompute.add(share);
      if (what.kind == task_kind::input_gradient || what.kind == task_kind::backward) of.input_gradient.add(share);
      if (what.kind == task_kind::weight_gradient || what.kind == task_kind::backward) of.weight_gradient.add(share);
    });
  }
  std::vector<stage_cost> all;
  for (const means& of : found) {
    all.push_back({of.forward.value(), of.input_gradient.value(), of.weight_gradient.value(), of.recompute.value()});
  }
  return costs(std::move(all), std::move(hops));
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
