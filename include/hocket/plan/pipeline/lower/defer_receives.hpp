// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Sixth pass, for transports whose receive blocks or takes a buffer at once: each receive as late as it can stand.
/// Where receives are posted early and waited for at the consumer, as in hocket's own executor, leave it out.
#pragma once

#include <hocket/plan/pipeline/messages.hpp>
#include <hocket/plan/pipeline/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {
namespace detail {

/// Whether `what` cannot be done before `message` has been received.
constexpr bool needs_message(const work& what, const work& message) noexcept {
  if (what.stage != message.stage || what.microbatch != message.microbatch) return false;
  if (message.what == verb::receive_forward) return what.what == verb::forward;
  return what.what == verb::input_gradient || what.what == verb::backward;
}

}  // namespace detail

/// Holds each RECV until the action that needs it. Before a SEND to a peer with a higher rank, all RECV from that peer
/// that are held stand first: two neighbours that send to each other would wait for each other otherwise.
constexpr schedule defer_receives(schedule plan) {
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    row held;
    row deferred;
    const auto release = [&](auto is_due) {
      row kept;
      for (const action& each : held) (is_due(each.first) ? deferred : kept).push_back(each);
      held = std::move(kept);
    };
    for (const action& each : plan.of(rank)) {
      if (is_receive(each.first.what)) {
        held.push_back(each);
        continue;
      }
      if (is_send(each.first.what)) {
        const int peer = peer_of(plan, each.first);
        if (rank < peer) release([&](const work& message) { return peer_of(plan, message) == peer; });
      }
      for_each_work(each, [&](const work& what) {
        release([&](const work& message) { return detail::needs_message(what, message); });
      });
      deferred.push_back(each);
    }
    release([](const work&) { return true; });
    plan.of(rank) = std::move(deferred);
  }
  return plan;
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
