// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Fifth pass: when a buffer that is being sent may be used again.
#pragma once

#include <hocket/plan/pipeline/schedule.hpp>

#include <algorithm>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

/// A stage's output is known to be sent when the gradient for it has come back: WAIT_SEND_F(s, m) stands right after
/// the stage's own I or B of m, where it cannot wait for long. All other waits stand at the end, in the order of the
/// sends.
constexpr schedule wait_for_sends(schedule plan) {
  for (row& actions : plan.rows) {
    row pending;  // the waits that are due
    row with_waits;
    for (const action& each : actions) {
      with_waits.push_back(each);
      for_each_work(each, [&](const work& what) {
        if (what.what == verb::send_forward)
          pending.push_back({{verb::wait_send_forward, what.stage, what.microbatch}, {}});
        if (what.what == verb::send_backward)
          pending.push_back({{verb::wait_send_backward, what.stage, what.microbatch}, {}});
        if (what.what != verb::input_gradient && what.what != verb::backward) return;
        const action wait{{verb::wait_send_forward, what.stage, what.microbatch}, {}};
        const auto found = std::find(pending.begin(), pending.end(), wait);
        if (found == pending.end()) return;
        with_waits.push_back(wait);
        pending.erase(found);
      });
    }
    with_waits.insert(with_waits.end(), pending.begin(), pending.end());
    actions = std::move(with_waits);
  }
  return plan;
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
