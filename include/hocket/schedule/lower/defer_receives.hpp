// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Sixth pass, for transports whose receive blocks or takes a buffer at once: each receive as late as it can stand.
/// Where receives are posted early and waited for at the consumer, as in hocket's own executor, leave it out.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/schedule_action.hpp>

#include <cstddef>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {
namespace detail {

/// Whether `what` cannot be done before `message` has been received.
constexpr bool needs_message(const task& what, const task& message) noexcept {
  if (what.stage != message.stage || what.microbatch != message.microbatch) return false;
  if (message.what == task_kind::receive_forward) return what.what == task_kind::forward;
  return what.what == task_kind::input_gradient || what.what == task_kind::backward;
}

/// How many of the receives in `held` must stand before `next`: up to the last one that it needs; all, before a send.
constexpr std::size_t due_before(const schedule_action& next, const row& held) {
  if (is_send(next.first.what)) return held.size();
  std::size_t due = 0;
  for (std::size_t i = 0; i < held.size(); ++i) {
    for_each_task(next, [&](const task& what) {
      if (needs_message(what, held[i].first)) due = i + 1;
    });
  }
  return due;
}

}  // namespace detail

/// Holds each RECV until the action that needs it, or the SEND behind it in the row. No message passes another one:
/// `add_messages` lists them in one order in all rows, and that is why nobody waits in a circle where each end blocks
/// until the other is there. Two neighbours that send to each other, each before it receives, would be such a circle.
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
      if (is_receive(each.first.what)) {
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
