// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Lowering pass (see schedule/lower/lower.hpp): inserts the reduction of a stage's gradients over the ranks that share
/// the stage, right after its last microbatch, so that ranks reduce them while other stages still compute.
#pragma once

#include <hocket/schedule/schedule.hpp>

#include <cstddef>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

/// Inserts REDUCE_GRAD and then WAIT_REDUCE_GRAD after the last `backward` or `weight_gradient` of each stage in a row.
constexpr schedule reduce_gradients(schedule plan) {
  for (row& actions : plan.rows) {
    std::vector<int> left(static_cast<std::size_t>(plan.stages()));
    const auto is_last_half = [](const task& what) {
      return what.kind == task_kind::backward || what.kind == task_kind::weight_gradient;
    };
    for (const schedule_action& each : actions) {
      for_each_task(each, [&](const task& what) {
        if (is_last_half(what)) ++left[static_cast<std::size_t>(what.stage)];
      });
    }
    row with_reductions;
    for (const schedule_action& each : actions) {
      with_reductions.push_back(each);
      for_each_task(each, [&](const task& what) {
        if (!is_last_half(what) || --left[static_cast<std::size_t>(what.stage)] != 0) return;
        with_reductions.push_back({{task_kind::reduce_gradient, what.stage, -1}, {}});
        with_reductions.push_back({{task_kind::wait_reduce_gradient, what.stage, -1}, {}});
      });
    }
    actions = std::move(with_reductions);
  }
  return plan;
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
