// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Messages and flags in flight in the virtual clock of plan/trace.hpp: one first-in first-out mailbox for each sender,
/// receiver and channel or tag. Memory grows with the messages in flight, not with the length of the plan.
#pragma once

#include <hocket/core/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::detail {

inline constexpr std::uint32_t no_index = ~std::uint32_t{0};

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
};

constexpr std::uint32_t message_topic(unsigned channel) noexcept { return channel; }
constexpr std::uint32_t flag_topic(unsigned tag) noexcept { return (std::uint32_t{1} << 16) + tag; }
constexpr bool is_flag(std::uint32_t topic) noexcept { return (topic >> 16) != 0; }

/// All mailboxes, found by sender, receiver and topic: a hash table that constant expressions can use.
class mailbox_table {
 public:
  constexpr mailbox& box(std::uint32_t index) { return boxes_[index]; }
  constexpr queued_message& at(std::uint32_t index) { return messages_[index]; }

  constexpr std::uint32_t find(int from, int to, std::uint32_t topic) {
    if (2 * (boxes_.size() + 1) > slots_.size()) grow();
    std::uint32_t& found = slots_[slot_of(from, to, topic)];
    if (found == no_index) {
      found = static_cast<std::uint32_t>(boxes_.size());
      boxes_.push_back({.from = from, .to = to, .topic = topic});
    }
    return found;
  }

  constexpr std::uint32_t write(const queued_message& content) {
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

  constexpr queued_message pop(std::uint32_t box_index) {
    mailbox& from = boxes_[box_index];
    const std::uint32_t index = from.first;
    const queued_message content = messages_[index];
    from.first = content.next;
    if (from.first == no_index) from.last = no_index;
    messages_[index].next = std::exchange(free_, index);
    return content;
  }

 private:
  /// Returns the slot that holds the mailbox, or the empty slot in which to insert it.
  constexpr std::size_t slot_of(int from, int to, std::uint32_t topic) const noexcept {
    std::uint64_t mixed = static_cast<std::uint32_t>(from);
    mixed = (mixed << 32 | static_cast<std::uint32_t>(to)) ^ (static_cast<std::uint64_t>(topic) << 20);
    std::size_t slot = static_cast<std::size_t>((mixed * 0x9E3779B97F4A7C15u) >> 32);
    for (;; ++slot) {
      const std::size_t place = slot & (slots_.size() - 1);
      if (slots_[place] == no_index) return place;
      const mailbox& box = boxes_[slots_[place]];
      if (box.from == from && box.to == to && box.topic == topic) return place;
    }
  }

  constexpr void grow() {
    slots_.assign(std::max<std::size_t>(64, 2 * slots_.size()), no_index);
    for (std::uint32_t i = 0; i < boxes_.size(); ++i)
      slots_[slot_of(boxes_[i].from, boxes_[i].to, boxes_[i].topic)] = i;
  }

  std::vector<mailbox> boxes_;
  std::vector<std::uint32_t> slots_;
  std::vector<queued_message> messages_;
  std::uint32_t free_ = no_index;
};

}  // namespace plan::detail
HOCKET_END_NAMESPACE
