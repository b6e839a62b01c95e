// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The proof that a schedule with messages completes on a transport of given capacity, and that its messages are
/// complete: each send has a receive, comes after the task that produces its data, and before the task that needs them.
///
/// Whether the schedule completes depends on how many messages the transport buffers. With `capacity` 0 each send and
/// each receive blocks until the peer reaches the matching action (rendezvous). With capacity k, up to k messages from
/// one rank to another wait for their receives, and a further send blocks. A schedule that completes with 0 completes
/// with any capacity. With `unbounded`, only the task that needs a message waits for it, as in pipeline/executor.hpp.
///
/// A transport may leave a message with the sender until the receiver asks for it. So WAIT_SEND completes, with any
/// capacity, only when the peer has reached the receive. Each send needs a WAIT_SEND, because its buffer is reused, at
/// the latest when the row runs again.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/schedule/messages.hpp>
#include <hocket/schedule/prove.hpp>
#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/schedule_action.hpp>
#include <hocket/schedule/wait_for_sends.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

inline constexpr int unbounded = std::numeric_limits<int>::max();  ///< no limit on the messages in flight

namespace detail {

/// Simulates the rows action by action, as ranks with messages of this capacity run them.
class message_prover {
 public:
  constexpr message_prover(const schedule& plan, int capacity)
      : plan_(plan), capacity_(capacity), next_(plan.rows.size(), 0),
        places_(static_cast<std::size_t>(task_kinds) * static_cast<std::size_t>(plan.stages()) *
                    static_cast<std::size_t>(plan.microbatches),
                absent),
        in_flight_(is_counted(capacity) ? plan.rows.size() * plan.rows.size() : 0, 0) {}

  constexpr schedule_proof prove() {
    if (plan_.rows.size() != static_cast<std::size_t>(plan_.ranks()))
      fail(schedule_violation::wrong_number_of_rows, {});
    for (int rank = 0; rank < plan_.ranks() && !failed(); ++rank) {
      for (std::size_t i = 0; i < plan_.of(rank).size() && !failed(); ++i) note(rank, i);
    }
    for (int rank = 0; rank < plan_.ranks() && !failed(); ++rank) {
      for (std::size_t i = 0; i < plan_.of(rank).size() && !failed(); ++i) check_partners(rank, i);
    }
    if (!failed()) run();
    found_.ok = !failed();
    return found_;
  }

 private:
  static constexpr std::uint32_t absent = std::numeric_limits<std::uint32_t>::max();

  /// Returns whether the messages in flight are counted; a table of all pairs of ranks is then needed.
  static constexpr bool is_counted(int capacity) noexcept { return capacity > 0 && capacity != unbounded; }

  constexpr bool failed() const noexcept { return found_.what != schedule_violation::none; }

  constexpr void fail(schedule_violation what, const schedule_step& where, const schedule_step& other = {}) {
    found_.what = what;
    found_.where = where;
    found_.other = other;
  }
  constexpr schedule_step step_at(int rank, std::size_t index) const { return {rank, index, plan_.of(rank)[index]}; }
  constexpr schedule_step next_step(int rank) const { return step_at(rank, next_[static_cast<std::size_t>(rank)]); }

  /// Returns a reference to the position of a task in its rank's row; `absent` if the row lacks the task.
  constexpr std::uint32_t& place_of(const task& what) {
    return places_[(static_cast<std::size_t>(what.kind) * static_cast<std::size_t>(plan_.stages()) +
                    static_cast<std::size_t>(what.stage)) *
                       static_cast<std::size_t>(plan_.microbatches) +
                   static_cast<std::size_t>(what.microbatch)];
  }
  constexpr int rank_of(const task& what) const { return plan_.placement.rank_of(what.stage, what.microbatch); }
  constexpr schedule_step step_of(const task& what) {
    return is_in_row(what) ? step_at(rank_of(what), place_of(what)) : schedule_step{};
  }

  constexpr bool is_in_row(const task& what) { return place_of(what) != absent; }
  constexpr bool is_done(const task& what) {
    return is_in_row(what) && place_of(what) < next_[static_cast<std::size_t>(rank_of(what))];
  }

  // ---- every send has a receive, and every receive a send ----

  constexpr void note(int rank, std::size_t i) {
    for_each_task(plan_.of(rank)[i], [&](const task& what) {
      if (failed() || !has_microbatch(what.kind)) return;
      if (!is_stage(what.stage)) return fail(schedule_violation::no_such_stage, step_at(rank, i));
      if (what.microbatch < 0 || what.microbatch >= plan_.microbatches) {
        return fail(schedule_violation::no_such_microbatch, step_at(rank, i));
      }
      if (rank_of(what) != rank) return fail(schedule_violation::wrong_rank, step_at(rank, i));
      if (is_in_row(what)) return fail(schedule_violation::done_twice, step_at(rank, i), step_of(what));
      place_of(what) = static_cast<std::uint32_t>(i);
    });
  }

  constexpr void check_partners(int rank, std::size_t i) {
    for_each_task(plan_.of(rank)[i], [&](const task& what) {
      if (failed()) return;
      if (is_needless(what, rank)) return fail(schedule_violation::needless_message, step_at(rank, i));
      if (needs_partner(what, rank) && !is_in_row(partner_of(what))) {
        fail(schedule_violation::missing, step_at(rank, i));
        found_.missing = partner_of(what);
      } else if (is_send(what.kind) && !is_in_row(wait_of(what).first)) {
        fail(schedule_violation::overwritten_while_read, step_at(rank, i), step_of(producer_of(what)));
      }
    });
  }

  /// Returns the task that writes the buffer of `send`.
  constexpr task producer_of(const task& send) {
    return task_in_row(send.kind == task_kind::send_forward ? task_kind::forward : task_kind::backward, send.stage,
                       send.microbatch);
  }

  /// Returns the task of kind `what`; instead of `backward` the input gradient, if the row has both halves separately.
  constexpr task task_in_row(task_kind what, int stage, int microbatch) {
    const task halved{task_kind::input_gradient, stage, microbatch};
    return what == task_kind::backward && is_in_row(halved) ? halved : task{what, stage, microbatch};
  }

  /// Returns whether `what` sends or receives a message whose peer stage does not exist or is on the same rank.
  constexpr bool is_needless(const task& what, int rank) const {
    if (!is_send(what.kind) && !is_receive(what.kind)) return false;
    const task partner = partner_of(what);
    return !is_stage(partner.stage) || plan_.placement.rank_of(partner.stage, partner.microbatch) == rank;
  }

  /// Returns whether `partner_of(what)` must exist. A computation needs a receive only for a result of another rank.
  constexpr bool needs_partner(const task& what, int rank) const {
    const task partner = partner_of(what);
    if (partner.kind == task_kind::nothing) return false;
    if (!is_computation(what.kind)) return true;
    return plan_.placement.rank_of(neighbour_of(partner), partner.microbatch) != rank;
  }

  constexpr bool is_stage(int stage) const noexcept { return stage >= 0 && stage < plan_.stages(); }

  /// Returns the task that `what` requires: the other end of a message, the send of a wait, a computation's receive.
  constexpr task partner_of(const task& what) const {
    switch (what.kind) {
      case task_kind::send_forward: return {task_kind::receive_forward, what.stage + 1, what.microbatch};
      case task_kind::receive_forward: return {task_kind::send_forward, what.stage - 1, what.microbatch};
      case task_kind::send_backward: return {task_kind::receive_backward, what.stage - 1, what.microbatch};
      case task_kind::receive_backward: return {task_kind::send_backward, what.stage + 1, what.microbatch};
      case task_kind::wait_send_forward: return {task_kind::send_forward, what.stage, what.microbatch};
      case task_kind::wait_send_backward: return {task_kind::send_backward, what.stage, what.microbatch};
      case task_kind::forward:
        if (what.stage == 0) return {};
        return {task_kind::receive_forward, what.stage, what.microbatch};
      case task_kind::input_gradient:
      case task_kind::backward:
        if (what.stage == plan_.stages() - 1) return {};
        return {task_kind::receive_backward, what.stage, what.microbatch};
      default: return {};
    }
  }

  /// Returns the stage that sends the message of `receive`.
  static constexpr int neighbour_of(const task& receive) noexcept {
    return receive.kind == task_kind::receive_forward ? receive.stage - 1 : receive.stage + 1;
  }

  // ---- no rank waits forever ----

  constexpr void run() {
    for (bool moved = true; moved;) {
      moved = false;
      // Results pass upwards and gradients downwards: in one direction alone, each turn would move the others by a rank.
      for (int rank = 0; rank < plan_.ranks(); ++rank) moved = complete_all(rank) || moved;
      for (int rank = plan_.ranks() - 1; rank >= 0; --rank) moved = complete_all(rank) || moved;
    }
    for (int rank = 0; rank < plan_.ranks(); ++rank) {
      if (!at_end(rank)) return explain(rank);
    }
  }

  constexpr bool at_end(int rank) const { return next_[static_cast<std::size_t>(rank)] == plan_.of(rank).size(); }

  /// Completes the actions of `rank` until one has to wait; returns whether any did.
  constexpr bool complete_all(int rank) {
    bool moved = false;
    while (!at_end(rank) && complete_next(rank)) moved = true;
    return moved;
  }

  constexpr bool complete_next(int rank) {
    const schedule_action what = next_step(rank).what;
    if (capacity_ != unbounded && !can_transfer(what.first, rank)) return false;
    if (missing_dependency(what).kind != task_kind::nothing) return false;
    ++next_[static_cast<std::size_t>(rank)];
    return true;
  }

  /// Returns whether a transport of limited capacity lets `what` complete, and then updates the messages in flight.
  constexpr bool can_transfer(const task& what, int rank) {
    if (is_send(what.kind)) {
      if (capacity_ == 0) return peer_receives_next(what);
      int& held = in_flight(rank, peer_of(plan_, what));
      if (held >= capacity_) return false;
      ++held;
    } else if (is_receive(what.kind)) {
      if (!is_done(partner_of(what))) return false;
      if (capacity_ > 0) --in_flight(peer_of(plan_, what), rank);
    }
    return true;
  }

  /// Returns whether the next action of the peer of `send` is the matching receive.
  constexpr bool peer_receives_next(const task& send) const {
    const int peer = peer_of(plan_, send);
    return !at_end(peer) && next_step(peer).what.first == partner_of(send);
  }

  /// Returns a task that must be done before `what` and is not done, or `nothing`.
  constexpr task missing_dependency(const schedule_action& what) {
    task found;
    for_each_task(what, [&](const task& each) {
      if (found.kind == task_kind::nothing) found = missing_dependency(each);
    });
    return found;
  }

  constexpr task missing_dependency(const task& what) {
    const int m = what.microbatch;
    switch (what.kind) {
      case task_kind::forward: return missing_result({task_kind::receive_forward, what.stage, m}, task_kind::forward);
      case task_kind::input_gradient:
      case task_kind::backward:
        return unless_done({task_kind::forward, what.stage, m},
                           missing_result({task_kind::receive_backward, what.stage, m}, task_kind::backward));
      case task_kind::weight_gradient: return unless_done({task_kind::input_gradient, what.stage, m});
      case task_kind::recompute: return unless_done({task_kind::forward, what.stage, m});
      case task_kind::send_forward:
      case task_kind::send_backward: return unless_done(producer_of(what));
      case task_kind::wait_send_forward:
      case task_kind::wait_send_backward:
        return unless_done(partner_of(what), unless_done(partner_of(partner_of(what))));
      default: return {};
    }
  }

  /// Like `missing_dependency`, for the result of a neighbouring stage. If that is on another rank, send and receive
  /// must be done.
  constexpr task missing_result(const task& receive, task_kind made) {
    const int from = neighbour_of(receive);
    if (!is_stage(from)) return {};
    const task result = task_in_row(made, from, receive.microbatch);
    if (rank_of(result) == rank_of(receive)) return unless_done(result);
    return unless_done(receive, unless_done(partner_of(receive)));
  }

  constexpr task unless_done(const task& needed, const task& otherwise = {}) {
    return is_done(needed) ? otherwise : needed;
  }

  constexpr int& in_flight(int from, int to) {
    return in_flight_[static_cast<std::size_t>(from) * plan_.rows.size() + static_cast<std::size_t>(to)];
  }

  /// Follows the waits from `rank` on, until a rank waits for itself, has completed its row, or occurs twice.
  constexpr void explain(int rank) {
    std::vector<char> seen(plan_.rows.size(), false);
    while (true) {
      seen[static_cast<std::size_t>(rank)] = true;
      const int other = awaited_by(rank);
      if (other == rank) {
        return fail(schedule_violation::before_its_input, next_step(rank),
                    step_of(missing_dependency(next_step(rank).what)));
      }
      if (at_end(other) || seen[static_cast<std::size_t>(other)]) {
        return fail(schedule_violation::deadlock, next_step(rank), at_end(other) ? schedule_step{} : next_step(other));
      }
      rank = other;
    }
  }

  /// Returns the rank for which `rank` waits: that of a task that its next action lacks, else its message's peer.
  constexpr int awaited_by(int rank) {
    const schedule_action what = next_step(rank).what;
    const task missing = missing_dependency(what);
    return missing.kind == task_kind::nothing ? peer_of(plan_, what.first) : rank_of(missing);
  }

  const schedule& plan_;
  int capacity_;
  std::vector<std::size_t> next_;      ///< by rank
  std::vector<std::uint32_t> places_;  ///< by kind, stage and microbatch
  std::vector<int> in_flight_;         ///< by sender and receiver
  schedule_proof found_;
};

}  // namespace detail

/// Proves that every send of `plan` has a receive and comes in time, that no buffer is overwritten while it is sent,
/// and that `plan` completes if a transport buffers `capacity` messages from one rank to another: 0 for rendezvous,
/// `unbounded` if sends and receives never block. `prove(plan)` must hold, too.
constexpr schedule_proof prove_messages(const schedule& plan, int capacity = 0) {
  return detail::message_prover(plan, capacity).prove();
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
