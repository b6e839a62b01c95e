// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The memory that one rank's endpoint group shares with the threads of its peers: the channels on which they send to
/// it, and the window that the communicator requested.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/transport/concept.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace local {

/// One message: the address of its bytes, or the bytes themselves if they are few. The payload comes first, so that it
/// is aligned for every element type.
struct alignas(platform::cache_line) cell {
  static constexpr std::size_t inline_capacity = 32;

  std::byte payload[inline_capacity];
  const void* data = nullptr;  ///< in the sender's memory; null if the bytes are in `payload`
  std::uint64_t bytes = 0;
  std::uint32_t sequence = 0;
  std::uint32_t signature = 0;
  std::atomic<std::uint64_t> number{0};  ///< messages of this channel so far, this one included, once it has arrived
};
static_assert(sizeof(cell) == platform::cache_line);

/// The messages from one rank to another, in order. One sender, one receiver.
struct channel {
  cell cells[transport::channel_depth];
  alignas(platform::cache_line) std::atomic<std::uint64_t> consumed{0};  ///< written by the receiver
};

/// Control messages to one rank.
class mailbox {
 public:
  void put(transport::control_message message) {
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
    has_messages_.store(true, std::memory_order_release);
  }

  bool has_messages() const noexcept { return has_messages_.load(std::memory_order_acquire); }

  /// Takes the oldest message; returns false if there is none.
  bool pop(transport::control_message& message) {
    if (!has_messages()) return false;
    const std::lock_guard lock(mutex_);
    message = std::move(messages_.front());
    messages_.pop_front();
    has_messages_.store(!messages_.empty(), std::memory_order_release);
    return true;
  }

 private:
  std::atomic<bool> has_messages_{false};
  std::mutex mutex_;
  std::deque<transport::control_message> messages_;
};

/// Shared by all members of a communicator: when the last one has left, the world drops it.
class segment {
 public:
  segment(int members, std::size_t window_bytes)
      : members_(static_cast<std::size_t>(members)), channels_(new channel[channels_per_peer * members_]),
        window_(allocate(window_bytes)), owners_(members) {}
  segment(const segment&) = delete;
  segment& operator=(const segment&) = delete;
  ~segment() { ::operator delete(window_, std::align_val_t(platform::cache_line)); }

  /// Returns a channel of one sender; those of a sender are contiguous, numbered by `channel_index`.
  channel& channel_from(int sender, std::size_t index) noexcept {
    return channels_[static_cast<std::size_t>(sender) * channels_per_peer + index];
  }

  static constexpr std::size_t channels_of_plans = transport::window * transport::max_channels;
  static constexpr std::size_t channels_per_peer =
      channels_of_plans + transport::last_channel - transport::point_to_point_channel + 1;
  static constexpr std::size_t channel_index(transport::message_id id) noexcept {
    return id.point_to_point() ? channels_of_plans + id.channel - transport::point_to_point_channel
                               : id.slot() * transport::max_channels + id.channel;
  }

  std::byte* window() noexcept { return window_; }
  mailbox& mail() noexcept { return mail_; }

  /// Marks that the rank that owns this memory has left the communicator.
  void leave() noexcept { left_.store(true, std::memory_order_release); }
  bool left() const noexcept { return left_.load(std::memory_order_acquire); }

  /// Releases one member's share. Returns true if it was the last.
  bool release() noexcept { return owners_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

 private:
  static std::byte* allocate(std::size_t bytes) {
    auto* const memory =
        static_cast<std::byte*>(::operator new(bytes > 0 ? bytes : 1, std::align_val_t(platform::cache_line)));
    for (std::size_t i = 0; i < bytes; ++i) memory[i] = std::byte{0};
    return memory;
  }

  const std::size_t members_;
  const std::unique_ptr<channel[]> channels_;
  std::byte* const window_;
  mailbox mail_;
  std::atomic<bool> left_{false};
  std::atomic<int> owners_;
};

}  // namespace local
HOCKET_END_NAMESPACE
