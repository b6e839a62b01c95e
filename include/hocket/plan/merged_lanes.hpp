// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The lanes of each rank merged into one sequence, so that a device stream can run a plan with messages.
///
/// A device stream has no lanes: a wait blocks everything that follows it. Not every order of a rank's actions is safe,
/// even if it preserves the order of each lane, because two ranks could wait for each other. Therefore the merger finds
/// one order of all actions of all ranks in which each action can run at its turn. If every rank follows its part of
/// that order, the first action that is not done yet waits for nothing, so that the plan cannot deadlock.
///
/// Messages from one rank to another get slots: places for the words that indicate that a message has arrived, and that
/// it was received. In that order, a message reuses a slot only after the previous message in the slot was received.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/action.hpp>
#include <hocket/plan/detail/action_table.hpp>
#include <hocket/plan/detail/index_map.hpp>
#include <hocket/plan/plan.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// Maximum number of messages in flight from one rank to another.
inline constexpr unsigned message_slots = 16;

inline constexpr std::uint32_t no_message = detail::none;

struct merged_message {
  int from = 0;
  int to = 0;
  action sent;                        ///< the action that sends it, which also gives the place of its data
  unsigned lane = 0;                  ///< lane of the sender
  unsigned slot = 0;                  ///< slot for messages from `from` to `to`
  std::uint32_t before = no_message;  ///< previous message in the slot
  bool received = false;
};

struct merged_step {
  unsigned lane = 0;
  unsigned position = 0;  ///< in the lane
  action what;
  std::uint32_t message = no_message;  ///< number of the message that a send or a receive handles
};

/// The merged lanes of a proven plan, for one number of ranks.
struct merged_lanes {
  /// True if all actions were placed. Otherwise the other members are invalid, because the plan has no proof.
  bool complete = false;
  std::vector<std::vector<merged_step>> steps;  ///< by rank
  std::vector<merged_message> messages;         ///< in the order in which they are sent
};

namespace detail {

class lane_merger {
 public:
  explicit lane_merger(const action_table& table)
      : table_(table), ranks_(static_cast<std::size_t>(table.ranks)), lanes_(table.lanes()) {
    result_.steps.resize(ranks_);
  }

  merged_lanes operator()() {
    // Each lane advances by one step in turn, so that no lane falls behind.
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t lane = 0; lane < table_.lanes(); ++lane) moved = advance(lane) || moved;
    }
    result_.complete = is_received(result_.messages.begin(), result_.messages.end());
    for (std::uint32_t lane = 0; lane < table_.lanes(); ++lane) {
      result_.complete = result_.complete && lanes_[lane].position == table_.length(lane);
    }
    return std::move(result_);
  }

 private:
  struct lane_state {
    std::uint32_t position = 0;
    std::vector<std::uint32_t> unjoined;  ///< messages sent since the last join
  };

  using slot_row = std::array<std::uint32_t, message_slots>;

  struct channel {
    std::vector<std::uint32_t> sent;  ///< message numbers
    std::size_t received = 0;
  };

  /// Performs the next action of `lane` if it can run now; returns whether it did.
  bool advance(std::uint32_t lane) {
    lane_state& at = lanes_[lane];
    if (at.position == table_.length(lane)) return false;
    const int rank = table_.rank_of(lane);
    merged_step next{lane % table_.shape.lanes, at.position, table_.at(lane, at.position), no_message};
    if (next.what.join && !join(at)) return false;
    switch (next.what.kind) {
      case action_kind::send:
        if (!send(rank, next)) return false;
        at.unjoined.push_back(next.message);
        break;
      case action_kind::receive:
      case action_kind::receive_reduce:
        if (!receive(rank, next)) return false;
        break;
      case action_kind::push:
      case action_kind::signal:
        for_each_peer(rank, next.what, [&](int peer) { signals_[signal_key(rank, peer, next.what)] = 0; });
        break;
      case action_kind::wait:
        if (!has_all_signals(rank, next.what)) return false;
        break;
      default: break;
    }
    result_.steps[static_cast<std::size_t>(rank)].push_back(next);
    ++at.position;
    return true;
  }

  template <class Iterator>
  static bool is_received(Iterator begin, Iterator end) {
    return std::all_of(begin, end, [](const merged_message& each) { return each.received; });
  }

  bool join(lane_state& at) {
    const auto received = [&](std::uint32_t each) { return result_.messages[each].received; };
    if (!std::all_of(at.unjoined.begin(), at.unjoined.end(), received)) return false;
    at.unjoined.clear();
    return true;
  }

  bool send(int rank, merged_step& next) {
    const int peer = next.what.peer;
    channel& to = channel_of(rank, peer, next.what);
    if (to.sent.size() - to.received >= channel_depth) return false;
    slot_row& slots = slots_between(rank, peer);
    for (unsigned slot = 0; slot < message_slots; ++slot) {
      std::uint32_t& last = slots[slot];
      if (last != no_message && !result_.messages[last].received) continue;
      next.message = static_cast<std::uint32_t>(result_.messages.size());
      result_.messages.push_back({rank, peer, next.what, next.lane, slot, last, false});
      last = next.message;
      to.sent.push_back(next.message);
      return true;
    }
    return false;
  }

  bool receive(int rank, merged_step& next) {
    channel& from = channel_of(next.what.peer, rank, next.what);
    if (from.received == from.sent.size()) return false;
    merged_message& first = result_.messages[from.sent[from.received]];
    if (first.sent.count != next.what.count) return false;  // a proven plan has no such message
    next.message = from.sent[from.received++];
    first.received = true;
    return true;
  }

  bool has_all_signals(int rank, const action& what) const {
    bool all = true;
    for_each_peer(rank, what, [&](int peer) { all = all && signals_.find(signal_key(peer, rank, what)) != none; });
    return all;
  }

  template <class Visit>
  void for_each_peer(int rank, const action& what, Visit visit) const {
    const int first = what.peer == all_peers ? 0 : what.peer;
    const int end = what.peer == all_peers ? table_.ranks : what.peer + 1;
    for (int peer = first; peer < end; ++peer) {
      if (peer != rank) visit(peer);
    }
  }

  channel& channel_of(int from, int to, const action& what) {
    std::uint32_t& index = channel_index_[key(from, to, what.channel)];
    if (index == none) {
      index = static_cast<std::uint32_t>(channels_.size());
      channels_.emplace_back();
    }
    return channels_[index];
  }

  /// Returns the last message in each slot from one rank to another. Pairs of ranks without messages have no slots.
  slot_row& slots_between(int from, int to) {
    std::uint32_t& index = slot_index_[pair(from, to)];
    if (index == none) {
      index = static_cast<std::uint32_t>(slots_.size());
      slots_.emplace_back().fill(no_message);
    }
    return slots_[index];
  }

  std::uint64_t key(int from, int to, std::uint32_t number) const noexcept {
    return (static_cast<std::uint64_t>(pair(from, to)) << 17) | number;
  }
  /// A signal that comes with a push is distinct from a signal with the same tag that comes alone.
  std::uint64_t signal_key(int from, int to, const action& what) const noexcept {
    const bool pushed = what.kind == action_kind::push || what.from == region::inbox;
    return key(from, to, what.tag | (pushed ? 0x10000U : 0U));
  }
  std::size_t pair(int from, int to) const noexcept {
    return static_cast<std::size_t>(from) * ranks_ + static_cast<std::size_t>(to);
  }

  const action_table& table_;
  const std::size_t ranks_;
  merged_lanes result_;
  std::vector<lane_state> lanes_;
  std::vector<slot_row> slots_;
  index_map slot_index_;
  std::vector<channel> channels_;
  index_map channel_index_;
  index_map signals_;
};

}  // namespace detail

template <algorithm Plan>
merged_lanes merge_lanes(const Plan& of, int ranks) {
  return detail::lane_merger(detail::tabulate(of, std::max(ranks, 1)))();
}

}  // namespace plan
HOCKET_END_NAMESPACE
