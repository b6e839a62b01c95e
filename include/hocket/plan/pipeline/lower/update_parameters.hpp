// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The pass that puts in when the optimizer steps: a stage whose gradients are complete need not wait for the others.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/pipeline/action.hpp>
#include <hocket/plan/pipeline/schedule.hpp>

#include <cstddef>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

/// After all that a rank does for a stage's gradients: UPDATE. Not for parameters that several stages share: their
/// gradients are complete when all rows are over.
constexpr schedule update_parameters(schedule plan) {
  for (row& actions : plan.rows) {
    std::vector<std::size_t> last(static_cast<std::size_t>(plan.stages()), actions.size());
    for (std::size_t i = 0; i < actions.size(); ++i) {
      for_each_work(actions[i], [&](const work& what) {
        const bool is_gradient = is_computation(what.what) || what.what == verb::wait_reduce_gradient;
        if (is_gradient) last[static_cast<std::size_t>(what.stage)] = i;
      });
    }
    row with_updates;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      with_updates.push_back(actions[i]);
      for_each_work(actions[i], [&](const work& what) {
        if (what.stage < 0 || last[static_cast<std::size_t>(what.stage)] != i) return;
        with_updates.push_back({{verb::update, what.stage, -1}, {}});
      });
    }
    actions = std::move(with_updates);
  }
  return plan;
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
