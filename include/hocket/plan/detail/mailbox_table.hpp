// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Messages and flags in flight in the virtual clock of plan/trace.hpp: one first-in first-out mailbox for each sender,
/// receiver and channel or tag. Memory grows with the messages in flight and the lanes that wait for one, not with the
/// length of the plan: a mailbox without either is removed.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/detail/index_map.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::detail {

inline constexpr std::uint32_t no_index = none;

/// A message of a channel, or a flag, in flight between two ranks.
struct queued_message {
  std::uint32_t sender = 0;  ///< lane, counted over all ranks
  std::uint32_t index = 0;   ///< action in that lane
  std::uint32_t box = 0;
  std::uint32_t next = no_index;
  std::uint64_t bytes = 0;
  double start = 0;
  double arrival = 0;
};

/// Messages on one channel, or flags with one tag, that have arrived from one rank at another and are not yet received.
struct mailbox {
  int from = 0;
  int to = 0;
  std::uint32_t topic = 0;
  std::uint32_t first = no_index;  ///< messages, oldest first
  std::uint32_t last = no_index;
  std::uint32_t reader = no_index;  ///< the lane that waits for the next message
  std::uint32_t in_flight = 0;      ///< messages that were written and not received
};

constexpr std::uint32_t message_topic(unsigned channel) noexcept { return channel; }
constexpr std::uint32_t flag_topic(unsigned tag) noexcept { return (std::uint32_t{1} << 16) + tag; }
constexpr bool is_flag(std::uint32_t topic) noexcept { return (topic >> 16) != 0; }

/// All mailboxes, found by sender, receiver and topic: a hash table that constant expressions can use.
class mailbox_table {
 public:
  constexpr mailbox& box(std::uint32_t index) { return boxes_[index]; }
  constexpr queued_message& at(std::uint32_t index) { return messages_[index]; }

  /// Returns the mailbox, which is made if it does not exist. The caller that finds an empty one must write or wait.
  constexpr std::uint32_t find(int from, int to, std::uint32_t topic) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    std::uint32_t& found = slots_[slot_of(from, to, topic)];
    if (found == no_index) found = make({.from = from, .to = to, .topic = topic});
    return found;
  }

  constexpr std::uint32_t write(const queued_message& content) {
    ++boxes_[content.box].in_flight;
    if (free_ == no_index) {
      messages_.push_back(content);
      return static_cast<std::uint32_t>(messages_.size() - 1);
    }
    const std::uint32_t index = free_;
    free_ = messages_[index].next;
    messages_[index] = content;
    return index;
  }

  /// Puts a message into its box; returns the lane that waited for it, if any.
  constexpr std::uint32_t deliver(std::uint32_t index) {
    mailbox& to = boxes_[messages_[index].box];
    (to.last == no_index ? to.first : messages_[to.last].next) = index;
    to.last = index;
    return std::exchange(to.reader, no_index);
  }

  /// Removes and returns the oldest message, and removes the mailbox if no message is in flight to it.
  constexpr queued_message pop(std::uint32_t box_index) {
    mailbox& from = boxes_[box_index];
    const std::uint32_t index = from.first;
    const queued_message content = messages_[index];
    from.first = content.next;
    if (from.first == no_index) from.last = no_index;
    messages_[index].next = std::exchange(free_, index);
    if (--from.in_flight == 0 && from.reader == no_index) remove(box_index);
    return content;
  }

 private:
  constexpr std::uint32_t make(const mailbox& content) {
    ++used_;
    if (free_box_ == no_index) {
      boxes_.push_back(content);
      return static_cast<std::uint32_t>(boxes_.size() - 1);
    }
    const std::uint32_t index = free_box_;
    free_box_ = boxes_[index].first;
    boxes_[index] = content;
    return index;
  }

  /// Empties the slot, and moves up the mailboxes behind it that a search would no longer find.
  constexpr void remove(std::uint32_t index) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t hole = slot_of(boxes_[index].from, boxes_[index].to, boxes_[index].topic);
    for (std::size_t next = (hole + 1) & mask; slots_[next] != no_index; next = (next + 1) & mask) {
      const mailbox& box = boxes_[slots_[next]];
      const std::size_t home = home_of(box.from, box.to, box.topic) & mask;
      if (((next - home) & mask) < ((next - hole) & mask)) continue;
      slots_[hole] = slots_[next];
      hole = next;
    }
    slots_[hole] = no_index;
    boxes_[index].first = std::exchange(free_box_, index);
    --used_;
  }

  static constexpr std::size_t home_of(int from, int to, std::uint32_t topic) noexcept {
    std::uint64_t mixed = static_cast<std::uint32_t>(from);
    mixed = (mixed << 32 | static_cast<std::uint32_t>(to)) ^ (static_cast<std::uint64_t>(topic) << 20);
    return static_cast<std::size_t>((mixed * 0x9E3779B97F4A7C15u) >> 32);
  }

  /// Returns the slot that holds the mailbox, or the empty slot in which to insert it.
  constexpr std::size_t slot_of(int from, int to, std::uint32_t topic) const noexcept {
    for (std::size_t slot = home_of(from, to, topic);; ++slot) {
      const std::size_t place = slot & (slots_.size() - 1);
      if (slots_[place] == no_index) return place;
      const mailbox& box = boxes_[slots_[place]];
      if (box.from == from && box.to == to && box.topic == topic) return place;
    }
  }

  constexpr void grow() {
    std::vector<std::uint32_t> old(std::max<std::size_t>(64, 2 * slots_.size()), no_index);
    old.swap(slots_);
    for (const std::uint32_t index : old) {
      if (index == no_index) continue;
      slots_[slot_of(boxes_[index].from, boxes_[index].to, boxes_[index].topic)] = index;
    }
  }

  std::vector<mailbox> boxes_;
  std::vector<std::uint32_t> slots_;
  std::vector<queued_message> messages_;
  std::uint32_t free_ = no_index;      ///< a message
  std::uint32_t free_box_ = no_index;  ///< linked by `first`
  std::size_t used_ = 0;               ///< mailboxes that exist
};

}  // namespace plan::detail
HOCKET_END_NAMESPACE
