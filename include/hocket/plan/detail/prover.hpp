// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Runs a plan once, with expressions for data and vector clocks for time. Which send meets which receive does not depend
/// on the schedule, so what holds by the clocks in this one run holds in every run.
///
/// Waiting is taken at its worst: a join waits until the peers have received. Knowledge is taken at its worst too: a join
/// teaches nothing about the peer, for the message may have drained into a buffer.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/detail/action_table.hpp>
#include <hocket/plan/detail/clocks.hpp>
#include <hocket/plan/detail/index_map.hpp>
#include <hocket/plan/detail/memory.hpp>
#include <hocket/plan/detail/values.hpp>
#include <hocket/plan/detail/well_formed.hpp>
#include <hocket/plan/proof.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::detail {

class prover {
 public:
  prover(const prover&) = delete;
  prover& operator=(const prover&) = delete;

  template <class Aliased>
  constexpr prover(const action_table& table, Aliased aliased)
      : table_(table),
        lanes_(table.lanes()),
        known_(table.lanes()),
        values_(table.ranks, table.chunks()),
        memory_(table, known_, flights_, aliased) {
    result_.ranks = table.ranks;
  }

  constexpr proof run() {
    if (well_formed()) {
      fill_memory();
      if (run_lanes() && signals_waited_for() && ends_in_time()) check_goal();
    }
    result_.ok = result_.what == violation::none;
    return result_;
  }

 private:
  enum class progress : std::uint8_t { done, blocked, failed };

  struct lane_state {
    std::uint32_t position = 0;
    std::uint32_t unreceived = 0;           // messages sent that nobody has received
    std::vector<std::uint32_t> unjoined{};  // flights since the last join
    bool ended = false;
  };

  struct channel_state {
    std::uint32_t first = none;  // the flight to be received next
    std::uint32_t last = none;
    event receiver;
  };

  struct signal_state {
    event sent;
    std::uint32_t knowledge;
    bool waited_for = false;
  };

  struct foreign_read {
    event when;
    int owner;
  };

  // What went wrong.

  constexpr step step_of(event e) const {
    if (!e.happened()) return {};
    const bool ended = e.position >= table_.length(e.lane);
    return {table_.rank_of(e.lane), static_cast<int>(e.lane % table_.shape.lanes), static_cast<int>(e.position),
            ended ? action{} : table_.at(e.lane, e.position)};
  }

  constexpr progress fail(violation what, event where, event other = {}) {
    result_.what = what;
    result_.where = step_of(where);
    result_.other = step_of(other);
    return progress::failed;
  }

  constexpr progress fail_in(const hazard& h, event where, int rank, place at) {
    result_.memory_of = rank;
    result_.memory = at;
    return fail(h.what, where, h.other);
  }

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

  constexpr void fill_memory() {
    const goal_kind kind = table_.goal.kind;
    for (int rank = 0; rank < table_.ranks; ++rank) {
      for (std::uint32_t c = 0; c < table_.chunks(); ++c) {
        const std::uint32_t value = values_.contribution(rank, c);
        if (kind == goal_kind::broadcast) {
          if (rank == table_.goal.root) memory_.begin_with(memory_.cell_of(rank, out(c)), value);
        } else if (kind != goal_kind::all_gather || c / table_.shape.pieces == static_cast<std::uint32_t>(rank)) {
          memory_.begin_with(memory_.cell_of(rank, in(c)), value);
        }
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
    for (const std::uint32_t f : state.unjoined) flights_[f].joined_at = now.position;
    state.unjoined.clear();
    return true;
  }

  constexpr progress perform(event now, const action& a) {
    const int rank = table_.rank_of(now.lane);
    switch (a.what) {
      case verb::copy:
        if (memory_.cell_of(rank, {a.from, a.from_at}) == memory_.cell_of(rank, {a.to, a.to_at})) return progress::done;
        return gather(now, rank, a) ? store(now, a) : progress::failed;
      case verb::send: return send(now, a);
      case verb::receive:
      case verb::receive_reduce: return receive(now, a);
      case verb::load: return gather(now, a.peer, a) ? store(now, a) : progress::failed;
      case verb::load_reduce: return gather_all(now, a) ? store(now, a) : progress::failed;
      case verb::push:
      case verb::signal: return tell(now, a);
      case verb::wait: return wait(now, a);
    }
    return progress::failed;
  }

  // Memory. `held_` is what the step works on.

  /// held_ = `from` of `owner`.
  constexpr bool gather(event now, int owner, const action& a, std::uint32_t carrier = none) {
    if (!may_look_at(owner, now)) return false;
    held_.clear();
    const std::size_t first = memory_.cell_of(owner, {a.from, a.from_at});
    for (std::uint32_t i = 0; i < a.count; ++i) {
      const hazard h = memory_.read(now, first, i, a, a.from_at, a.from == region::scratch, carrier);
      if (h.what != violation::none) {
        fail_in(h, now, owner, {a.from, a.from_at + i});
        return false;
      }
      held_.push_back(memory_.value(first + i));
    }
    return true;
  }

  /// held_ = what `writer` pushed to this rank.
  constexpr bool gather_inbox(event now, int writer, const action& a) {
    held_.clear();
    const std::size_t first = memory_.inbox_of(table_.rank_of(now.lane), writer);
    for (std::uint32_t i = 0; i < a.count; ++i) {
      const hazard h = i < memory_.pushed() ? memory_.read(now, first, i, a, 0, true) : hazard{violation::reads_nothing, {}};
      if (h.what != violation::none) {
        fail_in(h, now, table_.rank_of(now.lane), inbox());
        return false;
      }
      held_.push_back(memory_.value(first + i));
    }
    return true;
  }

  constexpr bool gather_all(event now, const action& a) {
    std::vector<std::uint32_t> sum;
    const int self = table_.rank_of(now.lane);
    for (int rank = 0; rank < table_.ranks; ++rank) {
      if (a.from != region::inbox) {
        if (!gather(now, rank, a)) return false;
      } else if (rank == self) {
        action own = a;
        own.from = region::in;
        own.from_at = a.chunk;
        if (!gather(now, self, own)) return false;
      } else if (!gather_inbox(now, rank, a)) {
        return false;
      }
      if (rank > 0 && !combine(now, sum, held_)) return false;
      if (rank == 0) sum = held_;
    }
    held_ = sum;
    return true;
  }

  /// first = first ∘ second.
  constexpr bool combine(event now, std::vector<std::uint32_t>& first, const std::vector<std::uint32_t>& second) {
    for (std::size_t i = 0; i < first.size(); ++i) {
      if (values_.chunk_of(first[i]) != values_.chunk_of(second[i])) {
        return fail(violation::mixed_chunks, now) == progress::done;
      }
      result_.contribution = values_.shared(first[i], second[i]);
      if (result_.contribution >= 0) return fail(violation::counted_twice, now) == progress::done;
      first[i] = values_.combine(first[i], second[i]);
    }
    return true;
  }

  constexpr progress store(event now, const action& a) {
    const int rank = table_.rank_of(now.lane);
    return store_at(now, rank, memory_.cell_of(rank, {a.to, a.to_at}), a, a.to_at, a.to == region::scratch);
  }

  constexpr progress store_at(event now, int owner, std::size_t first, const action& a, std::uint32_t base, bool packed) {
    for (std::uint32_t i = 0; i < a.count; ++i) {
      const hazard h = memory_.write(now, first, i, a, base, packed, held_[i]);
      if (h.what != violation::none) return fail_in(h, now, owner, {a.to, a.to_at + i});
    }
    return progress::done;
  }

  /// Where a peer's buffers are is known from its first signal on; that they stay until it ends is checked in the end.
  constexpr bool may_look_at(int owner, event now) {
    const int rank = table_.rank_of(now.lane);
    if (owner == rank) return true;
    foreign_reads_.push_back({now, owner});
    const std::uint32_t index = first_heard_.find(pair_of(owner, rank));
    if (index != none && known_.knows(now.lane, waits_[index])) return true;
    return fail(violation::reads_before_begin, now) == progress::done;
  }

  constexpr bool has_begun(int rank, std::uint32_t lane) const noexcept {
    const std::uint32_t first = static_cast<std::uint32_t>(rank) * table_.shape.lanes;
    for (std::uint32_t l = first; l < first + table_.shape.lanes; ++l) {
      if (known_.knows(lane, {l, 0})) return true;
    }
    return false;
  }

  // Messages.

  constexpr std::uint64_t pair_of(int from, int to) const noexcept {
    return static_cast<std::uint64_t>(from) * static_cast<std::uint64_t>(table_.ranks) + static_cast<std::uint64_t>(to);
  }

  constexpr channel_state& channel(int from, int to, std::uint8_t number) {
    std::uint32_t& index = channel_index_[(pair_of(from, to) << 8) | number];
    if (index == none) {
      index = static_cast<std::uint32_t>(channels_.size());
      channels_.emplace_back();
    }
    return channels_[index];
  }

  constexpr progress send(event now, const action& a) {
    const int rank = table_.rank_of(now.lane);
    const auto number = static_cast<std::uint32_t>(flights_.size());
    channel_state& queue = channel(rank, a.peer, a.channel);
    if (queue.last != none) {
      if (!known_.knows(now.lane, flights_[queue.last].sent)) {
        return fail(violation::unordered_channel, now, flights_[queue.last].sent);
      }
      flights_[queue.last].next = number;
    }
    queue.last = number;
    if (queue.first == none) queue.first = number;
    if (!gather(now, rank, a, number)) return progress::failed;
    flights_.push_back({.sent = now, .received = {}, .knowledge = known_.keep(now.lane),
                        .first_value = static_cast<std::uint32_t>(carried_.size()), .chunk = a.chunk, .count = a.count});
    carried_.insert(carried_.end(), held_.begin(), held_.end());
    ++lanes_[now.lane].unreceived;
    lanes_[now.lane].unjoined.push_back(number);
    return progress::done;
  }

  constexpr progress receive(event now, const action& a) {
    const int rank = table_.rank_of(now.lane);
    channel_state& queue = channel(a.peer, rank, a.channel);
    if (queue.first == none) return progress::blocked;
    if (queue.receiver.happened() && !known_.knows(now.lane, queue.receiver)) {
      return fail(violation::unordered_channel, now, queue.receiver);
    }
    flight& f = flights_[queue.first];
    queue.receiver = now;
    queue.first = f.next;
    f.received = now;
    --lanes_[f.sent.lane].unreceived;
    known_.learn(now.lane, f.knowledge);
    if (f.count != a.count || f.chunk % table_.shape.pieces != a.chunk % table_.shape.pieces) {
      return fail(violation::size_mismatch, now, f.sent);
    }
    const auto begin = carried_.begin() + static_cast<std::ptrdiff_t>(f.first_value);
    std::vector<std::uint32_t> message(begin, begin + static_cast<std::ptrdiff_t>(f.count));
    if (a.what == verb::receive_reduce) {
      if (!gather(now, rank, a)) return progress::failed;
      if (!(a.message_first ? combine(now, message, held_) : combine(now, held_, message))) return progress::failed;
      if (a.message_first) held_ = message;
    } else {
      held_ = message;
    }
    return store(now, a);
  }

  // Signals.

  /// A signal that comes with a push is another one than a signal with the same tag that comes alone.
  constexpr std::uint64_t signal_key(int from, int to, const action& a) const noexcept {
    const bool pushed = a.what == verb::push || (a.what == verb::wait && a.from == region::inbox);
    return (pair_of(from, to) << 17) | (pushed ? 0x10000U : 0U) | a.tag;
  }

  /// Calls visit(peer) for the peer that `a` names, or for all; stops when it returns anything but `done`.
  template <class Visit>
  constexpr progress for_each_peer(int rank, const action& a, Visit visit) {
    if (a.peer != all_peers) return visit(a.peer);
    for (int peer = 0; peer < table_.ranks; ++peer) {
      if (peer == rank) continue;
      if (const progress p = visit(peer); p != progress::done) return p;
    }
    return progress::done;
  }

  constexpr progress tell(event now, const action& a) {
    const int rank = table_.rank_of(now.lane);
    if (a.what == verb::push && !gather(now, rank, a)) return progress::failed;
    const std::uint32_t knowledge = known_.keep(now.lane);
    return for_each_peer(rank, a, [&](int peer) {
      std::uint32_t& index = signal_index_[signal_key(rank, peer, a)];
      if (index != none) return fail(violation::tag_reused, now, signals_[index].sent);
      index = static_cast<std::uint32_t>(signals_.size());
      signals_.push_back({now, knowledge});
      if (a.what == verb::signal) return progress::done;
      const std::size_t where = memory_.inbox_of(peer, rank);
      if (memory_.value(where) != none) return fail(violation::tag_reused, now);
      return store_at(now, peer, where, a, 0, true);
    });
  }

  constexpr progress wait(event now, const action& a) {
    const int rank = table_.rank_of(now.lane);
    const progress ready = for_each_peer(rank, a, [&](int peer) {
      const std::uint32_t index = signal_index_.find(signal_key(peer, rank, a));
      if (index == none) return progress::blocked;
      return signals_[index].waited_for ? fail(violation::tag_reused, now, signals_[index].sent) : progress::done;
    });
    if (ready != progress::done) return ready;
    return for_each_peer(rank, a, [&](int peer) {
      signal_state& s = signals_[signal_index_.find(signal_key(peer, rank, a))];
      s.waited_for = true;
      known_.learn(now.lane, s.knowledge);
      note_heard(now, rank, peer, a);
      return progress::done;
    });
  }

  constexpr void note_heard(event now, int rank, int peer, const action& a) {
    if (a.from == region::inbox) return;
    std::uint32_t& index = first_heard_[pair_of(peer, rank)];
    if (index != none) return;
    index = static_cast<std::uint32_t>(waits_.size());
    waits_.push_back(now);
  }

  // After the run.

  /// No lane moves any more: finds the one that no peer can ever help, or two that wait.
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
        if (lanes_[lane].unreceived > 0 && (at_end || table_.at(lane, now.position).join)) {
          return fail(violation::never_received, first_unreceived(lane)) == progress::done;
        }
        const bool signal = table_.at(lane, now.position).what == verb::wait;
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
      if (!flights_[f].received.happened()) return flights_[f].sent;
    }
    return {};
  }

  constexpr event unfinished(int rank) const noexcept {
    const std::uint32_t first = static_cast<std::uint32_t>(rank) * table_.shape.lanes;
    for (std::uint32_t lane = first; lane < first + table_.shape.lanes; ++lane) {
      if (!lanes_[lane].ended) return {lane, lanes_[lane].position};
    }
    return {};
  }

  constexpr bool signals_waited_for() {
    for (const signal_state& s : signals_) {
      if (!s.waited_for) return fail(violation::never_waited_for, s.sent) == progress::done;
    }
    return true;
  }

  /// Whether `when` is certain to be done when `rank` ends.
  constexpr bool done_when_ends(int rank, event when) const noexcept {
    const std::uint32_t first = static_cast<std::uint32_t>(rank) * table_.shape.lanes;
    for (std::uint32_t lane = first; lane < first + table_.shape.lanes; ++lane) {
      if (known_.knows(lane, when)) return true;
    }
    return false;
  }

  constexpr bool ends_in_time() {
    for (const foreign_read& read : foreign_reads_) {
      if (done_when_ends(read.owner, read.when)) continue;
      result_.memory_of = read.owner;
      result_.memory = {step_of(read.when).what.from, step_of(read.when).what.from_at};
      return fail(violation::reads_after_end, read.when) == progress::done;
    }
    return true;
  }

  constexpr void check_goal() {
    result_.same_on_all_ranks = true;
    result_.order = combination_order::rank_order;
    if (table_.goal.kind == goal_kind::barrier) return check_barrier();
    for (int rank = 0; rank < table_.ranks; ++rank) {
      for (std::uint32_t c = 0; c < table_.chunks(); ++c) {
        if (table_.goal.kind == goal_kind::reduce_scatter && c / table_.shape.pieces != static_cast<std::uint32_t>(rank)) {
          continue;
        }
        const violation v = check_result(rank, c, memory_.value(memory_.cell_of(rank, out(c))));
        if (v == violation::none) continue;
        result_.what = v;
        result_.memory_of = rank;
        result_.memory = out(c);
        return;
      }
    }
    if (!table_.goal.reduces() || result_.order == combination_order::rank_order) return;
    if (table_.shape.order == combination_order::rank_order) result_.what = violation::order_overclaimed;
  }

  constexpr violation check_result(int rank, std::uint32_t c, std::uint32_t value) {
    if (value == none) return violation::wrong_result;
    if (!table_.goal.reduces()) return value == wanted(rank, c) ? violation::none : violation::wrong_result;
    if (values_.chunk_of(value) != c) return violation::wrong_result;
    result_.contribution = values_.missing(value);
    if (result_.contribution >= 0) return violation::missing_contribution;
    if (!values_.in_rank_order(value)) result_.order = combination_order::any_order;
    if (table_.goal.kind == goal_kind::all_reduce && value != memory_.value(memory_.cell_of(0, out(c)))) {
      result_.same_on_all_ranks = false;
    }
    return violation::none;
  }

  constexpr std::uint32_t wanted(int rank, std::uint32_t c) const noexcept {
    const std::uint32_t pieces = table_.shape.pieces;
    const auto block = static_cast<int>(c / pieces);
    switch (table_.goal.kind) {
      case goal_kind::broadcast: return values_.contribution(table_.goal.root, c);
      case goal_kind::all_to_all:
        return values_.contribution(block, static_cast<std::uint32_t>(rank) * pieces + c % pieces);
      default: return values_.contribution(block, c);
    }
  }

  constexpr void check_barrier() {
    for (int rank = 0; rank < table_.ranks; ++rank) {
      for (int peer = 0; peer < table_.ranks; ++peer) {
        if (peer == rank || knows_of_begin(rank, peer)) continue;
        result_.what = violation::barrier_leaks;
        result_.where.rank = rank;
        result_.other.rank = peer;
        return;
      }
    }
  }

  constexpr bool knows_of_begin(int rank, int peer) const noexcept {
    const std::uint32_t first = static_cast<std::uint32_t>(rank) * table_.shape.lanes;
    for (std::uint32_t lane = first; lane < first + table_.shape.lanes; ++lane) {
      if (has_begun(peer, lane)) return true;
    }
    return false;
  }

  const action_table& table_;
  proof result_;
  std::vector<lane_state> lanes_;
  std::vector<flight> flights_;
  clocks known_;
  values values_;
  memory memory_;
  std::vector<std::uint32_t> held_;
  std::vector<std::uint32_t> carried_;
  std::vector<foreign_read> foreign_reads_;
  std::vector<channel_state> channels_;
  index_map channel_index_;
  std::vector<signal_state> signals_;
  index_map signal_index_;
  std::vector<event> waits_;
  index_map first_heard_;
};

}  // namespace plan::detail
HOCKET_END_NAMESPACE
