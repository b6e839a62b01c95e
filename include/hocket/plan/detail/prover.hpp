// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The prover: runs a plan once, with expressions for data and vector clocks for time. Which receive matches which send
/// does not depend on the scheduling of the ranks, so what the clocks show in this one run holds in every run.
///
/// The prover assumes the worst case for waiting: a join waits until the peers have received. It also assumes the worst
/// case for knowledge: a join learns nothing about the peer, because the message may have drained into a buffer.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/detail/outcome.hpp>
#include <hocket/plan/detail/symmetric_form.hpp>
#include <hocket/plan/detail/well_formed.hpp>

#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace plan::detail {

class prover : private outcome {
 public:
  template <class Aliased>
  constexpr prover(const action_table& table, Aliased aliased) : outcome(table, aliased) {}

  constexpr proof run() {
    if (well_formed()) {
      fill_memory();
      if (run_lanes() && signals_waited_for() && ends_in_time()) check_postcondition();
      if (result_.what == violation::none) check_symmetry();
    }
    result_.ok = result_.what == violation::none;
    return result_;
  }

 private:
  // Before the run.

  constexpr bool well_formed() {
    const form check(table_);
    for (std::uint32_t lane = 0; lane < table_.lanes(); ++lane) {
      for (std::uint32_t i = 0; i < table_.length(lane); ++i) {
        const int rank = table_.rank_of(lane);
        const violation v = check.of(rank, table_.at(lane, i), memory_.aliased(rank));
        if (v != violation::none) return fail(v, {lane, i}) == progress::done;
      }
    }
    return true;
  }

  constexpr void check_symmetry() {
    const asymmetry odd = symmetric_form(table_).first();
    if (odd.found) fail(violation::symmetry_overclaimed, {odd.lane, odd.position});
  }

  constexpr void fill_memory() {
    const collective what = table_.collective;
    for (int rank = 0; rank < table_.ranks; ++rank) {
      for (std::uint32_t c = 0; c < table_.chunks(); ++c) {
        const std::uint32_t value = values_.contribution(rank, c);
        if (what.kind == collective_kind::broadcast && rank == what.root) {
          memory_.begin_with(memory_.cell_of(rank, out(c)), value);
        }
        if (holds(what.in_part(rank), rank, c)) memory_.begin_with(memory_.cell_of(rank, in(c)), value);
      }
    }
  }

  // The run.

  constexpr bool run_lanes() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t lane = 0; lane < table_.lanes(); ++lane) {
        for (;;) {
          const progress p = lanes_[lane].ended ? progress::blocked : advance(lane);
          if (p == progress::failed) return false;
          if (p == progress::blocked) break;
          moved = true;
        }
      }
    }
    for (const lane_state& lane : lanes_) {
      if (!lane.ended) return explain_stall();
    }
    return true;
  }

  constexpr progress advance(std::uint32_t lane) {
    lane_state& state = lanes_[lane];
    const event now{lane, state.position};
    if (state.position == table_.length(lane)) {
      if (!join(state, now)) return progress::blocked;
      state.ended = true;
      return progress::done;
    }
    const action& a = table_.at(lane, state.position);
    if (a.join && !join(state, now)) return progress::blocked;
    known_.enter(now);
    const progress p = perform(now, a);
    if (p == progress::done) ++state.position;
    return p;
  }

  constexpr bool join(lane_state& state, event now) {
    if (state.unreceived > 0) return false;
    for (const std::uint32_t f : state.unjoined) in_flight_[f].joined_at = now.position;
    state.unjoined.clear();
    return true;
  }

  constexpr progress perform(event now, const action& a) {
    const int rank = table_.rank_of(now.lane);
    switch (a.kind) {
      case action_kind::copy:
        if (memory_.cell_of(rank, {a.from, a.from_at}) == memory_.cell_of(rank, {a.to, a.to_at})) return progress::done;
        return gather(now, rank, a) ? store(now, a) : progress::failed;
      case action_kind::send: return send(now, a);
      case action_kind::receive:
      case action_kind::receive_reduce: return receive(now, a);
      case action_kind::load: return gather(now, a.peer, a) ? store(now, a) : progress::failed;
      case action_kind::load_reduce: return gather_all(now, a) ? store(now, a) : progress::failed;
      case action_kind::push:
      case action_kind::signal: return raise_signal(now, a);
      case action_kind::wait: return wait(now, a);
    }
    return progress::failed;
  }

  // When no lane can advance.

  /// Reports a lane that waits for a peer that has ended, or else two steps that wait.
  constexpr bool explain_stall() {
    event waiting;
    event partner;
    for (std::uint32_t lane = 0; lane < table_.lanes(); ++lane) {
      if (lanes_[lane].ended) continue;
      const event now{lane, lanes_[lane].position};
      const int peer = awaited_peer(now);
      const event there = unfinished(peer);
      if (!there.happened()) {
        const bool at_end = now.position == table_.length(lane);
        const bool sends =
            !at_end && table_.at(lane, now.position).kind == action_kind::send;  // into a channel that is full
        if (lanes_[lane].unreceived > 0 && (at_end || sends || table_.at(lane, now.position).join)) {
          return fail(violation::never_received, first_unreceived(lane)) == progress::done;
        }
        const bool signal = table_.at(lane, now.position).kind == action_kind::wait;
        return fail(signal ? violation::never_signalled : violation::never_sent, now) == progress::done;
      }
      if (!waiting.happened()) {
        waiting = now;
        partner = there;
      }
    }
    return fail(violation::deadlock, waiting, partner) == progress::done;
  }

  constexpr int awaited_peer(event now) const {
    const bool at_end = now.position == table_.length(now.lane);
    if (at_end || (table_.at(now.lane, now.position).join && lanes_[now.lane].unreceived > 0)) {
      const event sent = first_unreceived(now.lane);
      return table_.at(sent.lane, sent.position).peer;
    }
    const action& a = table_.at(now.lane, now.position);
    if (a.peer != all_peers) return a.peer;
    const int rank = table_.rank_of(now.lane);
    for (int peer = 0; peer < table_.ranks; ++peer) {
      if (peer != rank && signal_index_.find(signal_key(peer, rank, a)) == none) return peer;
    }
    return rank;
  }

  constexpr event first_unreceived(std::uint32_t lane) const {
    for (const std::uint32_t f : lanes_[lane].unjoined) {
      if (!in_flight_[f].received.happened()) return in_flight_[f].sent;
    }
    return {};
  }

  constexpr event unfinished(int rank) const {
    event found;
    any_lane_of(rank, [&](std::uint32_t lane) {
      if (!lanes_[lane].ended) found = {lane, lanes_[lane].position};
      return found.happened();
    });
    return found;
  }
};

}  // namespace plan::detail
HOCKET_END_NAMESPACE
