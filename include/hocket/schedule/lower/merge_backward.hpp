// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Lowering pass: merges an input gradient and the weight gradient right after it into one backward pass.
#pragma once

#include <hocket/schedule/schedule.hpp>

#include <cstddef>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

/// Replaces adjacent I and W of the same stage and microbatch by one B.
constexpr schedule merge_backward(schedule plan) {
  for (row& actions : plan.rows) {
    row merged;
    for (const schedule_action& each : actions) {
      const bool completes = !merged.empty() && !each.is_pair() && !merged.back().is_pair() &&
                             merged.back().first.kind == task_kind::input_gradient &&
                             each == weight_gradient(merged.back().first.stage, merged.back().first.microbatch);
      if (completes) merged.back().first.kind = task_kind::backward;
      else merged.push_back(each);
    }
    actions = std::move(merged);
  }
  return plan;
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
