// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Control messages through memory that all ranks of a communicator map.
///
/// These messages are needed most when a process has just been killed. In UCX's shared memory, all senders of a rank
/// share one queue: a sender that is killed while it writes leaves a gap, and the rank receives no message behind it.
/// Here each rank has a ring for each sender, and never receives an incomplete message of a killed sender.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/transport/concept.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// The rings from and to this rank, in the memory of the receiving ranks. Not thread-safe.
class mailbox {
 public:
  /// Makes a mailbox without ranks.
  mailbox() = default;
  /// `boxes` points to the memory of each rank: `bytes_for(ranks)` zeroed bytes, aligned to a cache line.
  mailbox(std::vector<std::byte*> boxes, int rank)
      : boxes_(std::move(boxes)), rank_(rank), ends_(boxes_.size()), waiting_(boxes_.size()) {}

  static constexpr std::size_t bytes_for(std::size_t ranks) noexcept { return sizeof(front) + ranks * sizeof(ring); }

  /// Sends `payload`, at most `control_message::most_bytes`, to `peer`; queues it if the ring has no room.
  void send(int peer, std::span<const std::byte> payload) {
    waiting_[index(peer)].emplace_back(payload.begin(), payload.end());
    flush(peer);
  }

  /// Tries again to send the queued messages. Returns true if none is left.
  bool flush() {
    bool all = true;
    for (int peer = 0; peer < static_cast<int>(boxes_.size()); ++peer) all = flush(peer) && all;
    return all;
  }

  /// True if messages have arrived since `receive` last found none.
  bool has_new_messages() const noexcept { return front_of(rank_).arrived.load(std::memory_order_acquire) != seen_; }

  /// Takes a message, by turns from all ranks. Returns false if there is none.
  bool receive(transport::control_message& message) {
    const std::uint32_t arrived = front_of(rank_).arrived.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < boxes_.size(); ++i) {
      const std::size_t writer = (next_ + i) % boxes_.size();
      ring& from = ring_of(rank_, static_cast<int>(writer));
      const std::uint32_t number = ends_[writer].received + 1;
      const entry& place = from.entries[number % depth];
      if (place.number.load(std::memory_order_acquire) != number) continue;
      const std::size_t bytes = std::min<std::size_t>(place.bytes, sizeof place.content);
      message = {static_cast<int>(writer), std::vector<std::byte>(place.content, place.content + bytes)};
      ends_[writer].received = number;
      from.taken.store(number, std::memory_order_release);
      next_ = writer + 1;
      return true;
    }
    seen_ = arrived;
    return false;
  }

 private:
  /// A power of two: numbers wrap around. Each call begins by reading all messages; until the next one, a peer can
  /// send six: two inquiries in this call, and in the next two more, its end or a question, and the failure's reason.
  static constexpr std::uint32_t depth = 8;

  struct alignas(platform::cache_line) entry {
    std::atomic<std::uint32_t> number;  ///< of the message in the ring, from 1; set when it is complete
    std::uint32_t bytes;
    std::byte content[transport::control_message::most_bytes];
  };
  struct ring {
    entry entries[depth];
    alignas(platform::cache_line) std::atomic<std::uint32_t> taken;  ///< number of the last message that was read
  };
  struct alignas(platform::cache_line) front {
    std::atomic<std::uint32_t> arrived;  ///< messages from all writers so far
  };
  /// Numbers of messages between this rank and a peer so far.
  struct end {
    std::uint32_t sent = 0;
    std::uint32_t received = 0;
  };

  static std::size_t index(int rank) noexcept { return static_cast<std::size_t>(rank); }
  front& front_of(int reader) const noexcept { return *reinterpret_cast<front*>(boxes_[index(reader)]); }
  ring& ring_of(int reader, int writer) const noexcept {
    return reinterpret_cast<ring*>(boxes_[index(reader)] + sizeof(front))[writer];
  }

  bool flush(int peer) {
    auto& waiting = waiting_[index(peer)];
    for (; !waiting.empty(); waiting.pop_front()) {
      ring& to = ring_of(peer, rank_);
      const std::uint32_t number = ends_[index(peer)].sent + 1;
      if (number - to.taken.load(std::memory_order_acquire) > depth) return false;
      entry& place = to.entries[number % depth];
      const std::size_t bytes = std::min(waiting.front().size(), sizeof place.content);
      place.bytes = static_cast<std::uint32_t>(bytes);
      std::copy_n(waiting.front().begin(), bytes, place.content);
      place.number.store(number, std::memory_order_release);
      front_of(peer).arrived.fetch_add(1, std::memory_order_release);
      ends_[index(peer)].sent = number;
    }
    return true;
  }

  std::vector<std::byte*> boxes_;
  int rank_ = 0;
  std::vector<end> ends_;
  std::vector<std::deque<std::vector<std::byte>>> waiting_;
  std::uint32_t seen_ = 0;
  std::size_t next_ = 0;
};

}  // namespace ucx
HOCKET_END_NAMESPACE
