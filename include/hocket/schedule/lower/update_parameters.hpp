// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The pass that inserts the optimizer steps: a stage whose gradients are complete does not wait for other stages.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/schedule_action.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {
namespace detail {

constexpr bool reduces_gradients(const schedule& plan) {
  return std::any_of(plan.rows.begin(), plan.rows.end(), [](const row& actions) {
    return std::any_of(actions.begin(), actions.end(),
                       [](const schedule_action& each) { return each.first.kind == task_kind::reduce_gradient; });
  });
}

}  // namespace detail

/// Inserts UPDATE after the last action of a rank for a stage's gradients. Not for parameters that several stages
/// share: their gradients are complete only when all rows end. Raises `invalid_argument` in two directions if
/// `reduce_gradients` has not run, because each of the two copies would step with its half of the gradient.
constexpr schedule update_parameters(schedule plan) {
  if (plan.placement.has_two_directions() && plan.ranks() > 1 && !detail::reduces_gradients(plan)) {
    raise(errc::invalid_argument,
          "update_parameters: in two directions each stage has two copies, each with the gradients of half of the "
          "microbatches; run reduce_gradients first, which adds them up, or the copies will differ");
  }
  for (row& actions : plan.rows) {
    std::vector<std::size_t> last(static_cast<std::size_t>(plan.stages()), actions.size());
    for (std::size_t i = 0; i < actions.size(); ++i) {
      for_each_task(actions[i], [&](const task& what) {
        const bool is_gradient = is_computation(what.kind) || what.kind == task_kind::wait_reduce_gradient;
        if (is_gradient) last[static_cast<std::size_t>(what.stage)] = i;
      });
    }
    row with_updates;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      with_updates.push_back(actions[i]);
      for_each_task(actions[i], [&](const task& what) {
        if (what.stage < 0 || last[static_cast<std::size_t>(what.stage)] != i) return;
        with_updates.push_back({{task_kind::update, what.stage, -1}, {}});
      });
    }
    actions = std::move(with_updates);
  }
  return plan;
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
