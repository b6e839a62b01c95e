// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The pass that trades time for memory: a stage drops the activations of a forward pass, and recomputes them from its
/// input, which the rank stores anyway, right before the gradients that need them.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/schedule_action.hpp>
#include <hocket/schedule/schedule_trace.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

/// Inserts R(s, m) before B or I of each of `stages`, or of all stages if the list is empty, except where B or I
/// follows its forward pass immediately, because nothing would be dropped. R needs no message, so a rank can run it
/// while it waits for a gradient. Raises `invalid_argument` if a stage does not exist.
constexpr schedule recompute_activations(schedule plan, const std::vector<int>& stages = {}) {
  for (const int stage : stages) {
    if (stage >= 0 && stage < plan.stages()) continue;
    raise(errc::invalid_argument, "recompute_activations: there is no stage " + std::to_string(stage) +
                                      "; the schedule has " + std::to_string(plan.stages()));
  }
  for (row& actions : plan.rows) {
    const std::vector<char> before = detail::recomputed_forwards(plan, actions);
    row made;
    task last;  // the last computation
    for (const schedule_action& each : actions) {
      for_each_task(each, [&](const task& what) {
        if (what.kind != task_kind::input_gradient && what.kind != task_kind::backward) return;
        const bool is_meant = stages.empty() || std::find(stages.begin(), stages.end(), what.stage) != stages.end();
        const bool is_there = !before.empty() && before[plan.index(what.stage, what.microbatch)];
        const bool is_held = last == task{task_kind::forward, what.stage, what.microbatch};
        if (is_meant && !is_there && !is_held) made.push_back(recompute(what.stage, what.microbatch));
      });
      made.push_back(each);
      if (is_computation(each.first.kind)) last = each.is_pair() ? task{} : each.first;
    }
    actions = std::move(made);
  }
  return plan;
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
