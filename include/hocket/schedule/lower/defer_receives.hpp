// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Lowering pass for transports whose receive blocks or takes a buffer immediately: moves each receive as late as
/// possible. Omit it if receives are posted early and waited for at the consumer, as in hocket's own executor.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/schedule_action.hpp>

#include <cstddef>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {
namespace detail {

/// Returns whether `what` needs `message`.
constexpr bool needs_message(const task& what, const task& message) noexcept {
  if (what.stage != message.stage || what.microbatch != message.microbatch) return false;
  if (message.kind == task_kind::receive_forward) return what.kind == task_kind::forward;
  return what.kind == task_kind::input_gradient || what.kind == task_kind::backward;
}

/// Returns how many receives in `held` must come before `next`: up to the last one that it needs, or all before a send.
constexpr std::size_t due_before(const schedule_action& next, const row& held) {
  if (is_send(next.first.kind)) return held.size();
  std::size_t due = 0;
  for (std::size_t i = 0; i < held.size(); ++i) {
    for_each_task(next, [&](const task& what) {
      if (needs_message(what, held[i].first)) due = i + 1;
    });
  }
  return due;
}

}  // namespace detail

/// Moves each RECV to the action that needs it, or to the next SEND in the row. Messages do not overtake each other:
/// `add_messages` lists them in one order in all rows, which prevents a cyclic wait if each end blocks until its peer
/// reaches the other. Two neighbours that send to each other, each before it receives, would be such a cycle.
constexpr schedule defer_receives(schedule plan) {
  for (row& actions : plan.rows) {
    row held;
    row deferred;
    const auto release = [&](std::size_t count) {
      const auto end = held.begin() + static_cast<std::ptrdiff_t>(count);
      deferred.insert(deferred.end(), held.begin(), end);
      held.erase(held.begin(), end);
    };
    for (const schedule_action& each : actions) {
      if (is_receive(each.first.kind)) {
        held.push_back(each);
        continue;
      }
      release(detail::due_before(each, held));
      deferred.push_back(each);
    }
    release(held.size());
    actions = std::move(deferred);
  }
  return plan;
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
