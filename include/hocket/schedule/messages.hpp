// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Questions about the messages of a schedule that passes, proofs and the executor all ask.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/schedule_action.hpp>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

/// Returns the rank at the other end of a send or receive.
constexpr int peer_of(const schedule& plan, const task& message) noexcept {
  const bool towards_next = message.kind == task_kind::send_forward || message.kind == task_kind::receive_backward;
  return plan.placement.rank_of(message.stage + (towards_next ? 1 : -1), message.microbatch);
}

/// Returns whether a schedule lists its messages, and not only its computations.
constexpr bool has_messages(const schedule& plan) noexcept {
  for (const row& actions : plan.rows) {
    for (const schedule_action& each : actions) {
      if (is_send(each.first.kind) || is_receive(each.first.kind)) return true;
    }
  }
  return false;
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
