// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Third pass: the gradients of a stage are added up over the ranks that share it as soon as its last microbatch is
/// through, while other stages still work.
#pragma once

#include <hocket/plan/pipeline/schedule.hpp>

#include <cstddef>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

/// After the last B or W of a stage on a rank: REDUCE_GRAD, then WAIT_REDUCE_GRAD.
constexpr schedule reduce_gradients(schedule plan) {
  for (row& actions : plan.rows) {
    std::vector<int> left(static_cast<std::size_t>(plan.stages()));
    const auto is_last_half = [](const work& what) {
      return what.what == verb::backward || what.what == verb::weight_gradient;
    };
    for (const action& each : actions) {
      for_each_work(each, [&](const work& what) {
        if (is_last_half(what)) ++left[static_cast<std::size_t>(what.stage)];
      });
    }
    row with_reductions;
    for (const action& each : actions) {
      with_reductions.push_back(each);
      for_each_work(each, [&](const work& what) {
        if (!is_last_half(what) || --left[static_cast<std::size_t>(what.stage)] != 0) return;
        with_reductions.push_back({{verb::reduce_gradient, what.stage, -1}, {}});
        with_reductions.push_back({{verb::wait_reduce_gradient, what.stage, -1}, {}});
      });
    }
    actions = std::move(with_reductions);
  }
  return plan;
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
