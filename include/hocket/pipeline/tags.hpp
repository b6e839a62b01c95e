// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The tags that distinguish the messages of a step, if that is necessary. Both ends know the whole schedule, so they
/// compute the same tags without communication.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/schedule/messages.hpp>
#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/schedule_action.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace pipeline::detail {

/// Returns a unique number for a message that crosses a boundary. Boundary s lies between stages s and s+1.
inline std::uint32_t crossing_of(const plan::pipeline::schedule& plan, const plan::pipeline::task& message) noexcept {
  using plan::pipeline::task_kind;
  const bool forward = message.kind == task_kind::send_forward || message.kind == task_kind::receive_forward;
  const bool after = message.kind == task_kind::send_forward || message.kind == task_kind::receive_backward;
  const int boundary = after ? message.stage : message.stage - 1;
  return static_cast<std::uint32_t>(2 * (boundary * plan.microbatches + message.microbatch) + !forward);
}

/// Returns an upper bound, exclusive, of the numbers that `crossing_of` returns.
inline std::uint32_t crossings_of(const plan::pipeline::schedule& plan) noexcept {
  return static_cast<std::uint32_t>(2 * plan.cells());
}

/// Returns whether every two ranks list the messages between them in the same order. Then one tag serves all of them.
/// Different tags cost more: some transports must set aside a message that arrives before its tag is asked for.
inline bool are_in_order(const plan::pipeline::schedule& plan) {
  struct message {
    int from;
    int to;
    std::uint32_t crossing;
    bool operator==(const message&) const = default;
  };
  std::vector<message> sent;
  std::vector<message> received;
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    for (const auto& each : plan.of(rank)) {
      const auto& what = each.first;
      if (plan::pipeline::is_send(what.kind)) {
        sent.push_back({rank, plan::pipeline::peer_of(plan, what), crossing_of(plan, what)});
      } else if (plan::pipeline::is_receive(what.kind)) {
        received.push_back({plan::pipeline::peer_of(plan, what), rank, crossing_of(plan, what)});
      }
    }
  }
  const auto by_ranks = [](const message& a, const message& b) {
    return std::pair(a.from, a.to) < std::pair(b.from, b.to);
  };
  std::stable_sort(sent.begin(), sent.end(), by_ranks);
  std::stable_sort(received.begin(), received.end(), by_ranks);
  return sent == received;
}

}  // namespace pipeline::detail
HOCKET_END_NAMESPACE
