// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Messages under way in a simulated world, and those that have come and were not received yet. Memory grows with what
/// is under way at once, not with what is ever sent.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/transport/sim/agenda.hpp>
#include <hocket/transport/sim/endpoint.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace sim {

struct letter {
  std::uint64_t key = 0;       ///< see `key_of`
  const void* data = nullptr;  ///< in the sender's memory; null if it has given up
  std::size_t bytes = 0;
  group* of = nullptr;  ///< null: free
  std::int32_t to = 0;
  std::uint32_t sender = nobody;  ///< lane; nobody: a parcel
  std::uint32_t count = 0;        ///< messages that the sender sent before
  std::uint32_t signature = 0;    ///< of the call
  std::uint32_t next = nobody;
  double arrival = 0;
};

/// What a lane receives, when the letter itself is gone.
struct taken_message {
  const void* data = nullptr;
  std::size_t bytes = 0;
  std::uint32_t signature = 0;
};

/// Which messages a receive takes: operation (or tag), channel and sender.
constexpr std::uint64_t key_of(std::uint32_t sequence, unsigned channel, int sender) noexcept {
  return (std::uint64_t{sequence} << 32) | (std::uint64_t{channel} << 28) | static_cast<std::uint32_t>(sender);
}
inline constexpr std::uint64_t no_key = ~std::uint64_t{0};

/// A letter in the list of an endpoint, and the one before it.
struct found_letter {
  std::uint32_t index = nobody;
  std::uint32_t before = nobody;
};

class letter_table {
 public:
  letter& operator[](std::uint32_t index) noexcept { return letters_[index]; }

  std::uint32_t make(const letter& content) {
    if (free_ == nobody) {
      letters_.push_back(content);
      return static_cast<std::uint32_t>(letters_.size() - 1);
    }
    const std::uint32_t index = free_;
    free_ = letters_[index].next;
    letters_[index] = content;
    return index;
  }

  void deliver(endpoint& to, std::uint32_t index) noexcept {
    (to.last_letter == nobody ? to.first_letter : letters_[to.last_letter].next) = index;
    to.last_letter = index;
  }

  /// The oldest with this key that was delivered. Few wait at a time, so they are looked at one by one.
  found_letter find(const endpoint& at, std::uint64_t key) const noexcept {
    found_letter found{at.first_letter, nobody};
    while (found.index != nobody && letters_[found.index].key != key) {
      found = {letters_[found.index].next, found.index};
    }
    return found;
  }

  /// Takes a delivered letter away.
  void take(endpoint& at, found_letter which) noexcept {
    letter& message = letters_[which.index];
    (which.before == nobody ? at.first_letter : letters_[which.before].next) = message.next;
    if (at.last_letter == which.index) at.last_letter = which.before;
    message.of = nullptr;
    message.next = std::exchange(free_, which.index);
  }

  /// What lane `sender` sent must not be looked at any more.
  void disown(std::uint32_t sender) noexcept {
    for (letter& each : letters_) {
      if (each.sender == sender && each.of != nullptr) each.data = nullptr;
    }
  }

 private:
  std::vector<letter> letters_;
  std::uint32_t free_ = nobody;
};

}  // namespace sim
HOCKET_END_NAMESPACE
