// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Messages in flight in a simulated world, and those that have arrived and were not received yet. Memory grows with
/// the number of messages in flight at the same time, not with the total.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/transport/sim/endpoint.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace sim {

struct queued_message {
  std::uint64_t key = 0;       ///< see `transport::message_key`
  const void* data = nullptr;  ///< in the sender's memory; null if the sender has abandoned it
  std::size_t bytes = 0;
  group* of = nullptr;  ///< null: free
  std::int32_t to = 0;
  std::uint32_t sender = no_index;  ///< lane; `no_index`: a message outside plans
  std::uint32_t count = 0;          ///< messages that the sender sent before
  std::uint32_t signature = 0;      ///< signature of the call
  std::uint32_t next = no_index;
  double arrival = 0;
};

/// The content of a received message, which is no longer queued.
struct taken_message {
  const void* data = nullptr;
  std::size_t bytes = 0;
  std::uint32_t signature = 0;
};

inline constexpr std::uint64_t no_key = ~std::uint64_t{0};

/// A message in its list of an endpoint, and its predecessor.
struct found_message {
  std::uint32_t index = no_index;
  std::uint32_t before = no_index;
};

class message_queues {
 public:
  queued_message& operator[](std::uint32_t index) noexcept { return queued_[index]; }

  std::uint32_t make(const queued_message& content) {
    if (free_ == no_index) {
      queued_.push_back(content);
      return static_cast<std::uint32_t>(queued_.size() - 1);
    }
    const std::uint32_t index = free_;
    free_ = queued_[index].next;
    queued_[index] = content;
    return index;
  }

  void deliver(endpoint& to, std::uint32_t index) {
    delivered_messages& delivered = to.delivered;
    const std::size_t lists = delivered.more.empty() ? 1 : delivered.more.size();
    if (delivered.count >= most_per_list * lists) divide(delivered, most_per_list * lists);
    append(delivered.list_of(queued_[index].key), index);
    ++delivered.count;
  }

  /// Returns the oldest delivered message with this key.
  found_message find(endpoint& at, std::uint64_t key) const noexcept {
    found_message found{at.delivered.list_of(key).first, no_index};
    while (found.index != no_index && queued_[found.index].key != key) {
      found = {queued_[found.index].next, found.index};
    }
    return found;
  }

  /// Removes a delivered message.
  void remove(endpoint& at, found_message which) noexcept {
    queued_message& message = queued_[which.index];
    message_list& list = at.delivered.list_of(message.key);
    (which.before == no_index ? list.first : queued_[which.before].next) = message.next;
    if (list.last == which.index) list.last = which.before;
    --at.delivered.count;
    message.of = nullptr;
    message.next = std::exchange(free_, which.index);
  }

  /// Clears the data pointers of messages from lane `sender`, which no rank may read any more.
  void disown(std::uint32_t sender) noexcept {
    for (queued_message& each : queued_) {
      if (each.sender == sender && each.of != nullptr) each.data = nullptr;
    }
  }

 private:
  /// To search so few messages takes less time than to compute a hash.
  static constexpr std::size_t most_per_list = 8;

  void append(message_list& to, std::uint32_t index) noexcept {
    (to.last == no_index ? to.first : queued_[to.last].next) = index;
    to.last = index;
  }

  /// Divides delivered messages into more lists. Messages with equal keys stay in order.
  void divide(delivered_messages& delivered, std::size_t lists) {
    std::vector<message_list> old(lists);
    old.swap(delivered.more);
    if (old.empty()) old.push_back(std::exchange(delivered.only, message_list{}));
    for (const message_list& each : old) {
      for (std::uint32_t index = each.first; index != no_index;) {
        const std::uint32_t next = std::exchange(queued_[index].next, no_index);
        append(delivered.list_of(queued_[index].key), index);
        index = next;
      }
    }
  }

  std::vector<queued_message> queued_;
  std::uint32_t free_ = no_index;
};

}  // namespace sim
HOCKET_END_NAMESPACE
