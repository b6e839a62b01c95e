// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Messages and signals between ranks while a plan is being proven.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/detail/index_map.hpp>
#include <hocket/plan/detail/workspace.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::detail {

class traffic : public workspace {
 protected:
  template <class Aliased>
  constexpr traffic(const action_table& table, Aliased aliased) : workspace(table, aliased), lanes_(table.lanes()) {}
  constexpr ~traffic() = default;

  struct lane_state {
    std::uint32_t position = 0;
    std::uint32_t unreceived = 0;           // messages sent and not yet received
    std::vector<std::uint32_t> unjoined{};  // messages sent since the last join
    bool ended = false;
  };

  struct channel_state {
    std::uint32_t first = none;  // the message to receive next
    std::uint32_t last = none;
    event receiver;
    unsigned unreceived = 0;
  };

  struct signal_state {
    event sent;
    std::uint32_t knowledge;
    bool waited_for = false;
  };

  // Messages.

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
    const auto number = static_cast<std::uint32_t>(in_flight_.size());
    channel_state& queue = channel(rank, a.peer, a.channel);
    if (queue.unreceived == channel_depth) return progress::blocked;
    if (queue.last != none) {
      if (!known_.knows(now.lane, in_flight_[queue.last].sent)) {
        return fail(violation::unordered_channel, now, in_flight_[queue.last].sent);
      }
      in_flight_[queue.last].next = number;
    }
    queue.last = number;
    if (queue.first == none) queue.first = number;
    if (!gather(now, rank, a, number)) return progress::failed;
    in_flight_.push_back({.sent = now,
                          .received = {},
                          .knowledge = known_.keep(now.lane, 1),
                          .first_value = static_cast<std::uint32_t>(carried_.size()),
                          .chunk = a.chunk,
                          .count = a.count});
    carried_.insert(carried_.end(), held_.begin(), held_.end());
    ++queue.unreceived;
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
    in_flight_message& f = in_flight_[queue.first];
    queue.receiver = now;
    queue.first = f.next;
    --queue.unreceived;
    f.received = now;
    --lanes_[f.sent.lane].unreceived;
    known_.learn(now.lane, f.knowledge);
    if (f.count != a.count || f.chunk % table_.shape.chunks_per_block != a.chunk % table_.shape.chunks_per_block) {
      return fail(violation::size_mismatch, now, f.sent);
    }
    const auto begin = carried_.begin() + static_cast<std::ptrdiff_t>(f.first_value);
    std::vector<std::uint32_t> message(begin, begin + static_cast<std::ptrdiff_t>(f.count));
    if (a.kind == action_kind::receive_reduce) {
      if (!gather(now, rank, a)) return progress::failed;
      if (!(a.message_first ? combine(now, message, held_) : combine(now, held_, message))) return progress::failed;
      if (a.message_first) held_ = message;
    } else {
      held_ = message;
    }
    return store(now, a);
  }

  // Signals.

  /// A signal that comes with a push is distinct from a signal with the same tag that comes alone.
  constexpr std::uint64_t signal_key(int from, int to, const action& a) const noexcept {
    const bool pushed = a.kind == action_kind::push || (a.kind == action_kind::wait && a.from == region::inbox);
    return (pair_of(from, to) << 17) | (pushed ? 0x10000U : 0U) | a.tag;
  }

  /// Calls visit(peer) for the peer that `a` names, or for all peers; stops when `visit` does not return `done`.
  template <class Visit>
  constexpr progress for_each_peer(int rank, const action& a, Visit visit) {
    if (a.peer != all_peers) return visit(a.peer);
    for (int peer = 0; peer < table_.ranks; ++peer) {
      if (peer == rank) continue;
      if (const progress p = visit(peer); p != progress::done) return p;
    }
    return progress::done;
  }

  constexpr progress raise_signal(event now, const action& a) {
    const int rank = table_.rank_of(now.lane);
    if (a.kind == action_kind::push && !gather(now, rank, a)) return progress::failed;
    const std::uint32_t readers = a.peer == all_peers ? static_cast<std::uint32_t>(table_.ranks - 1) : 1;
    const std::uint32_t knowledge = known_.keep(now.lane, readers);
    return for_each_peer(rank, a, [&](int peer) {
      std::uint32_t& index = signal_index_[signal_key(rank, peer, a)];
      if (index != none) return fail(violation::tag_reused, now, signals_[index].sent);
      index = static_cast<std::uint32_t>(signals_.size());
      signals_.push_back({now, knowledge});
      if (a.kind == action_kind::signal) return progress::done;
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
      if (a.from != region::inbox) mark_cause_delivered(now, peer);
      return progress::done;
    });
  }

  std::vector<lane_state> lanes_;
  std::vector<std::uint32_t> carried_;
  std::vector<channel_state> channels_;
  index_map channel_index_;
  std::vector<signal_state> signals_;
  index_map signal_index_;
};

}  // namespace plan::detail
HOCKET_END_NAMESPACE
