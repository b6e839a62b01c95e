// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A queue of messages from one process to another, in memory that both map: the fastest way to send on a host.
///
/// The memory is the receiver's, and only the sender writes to it. Each message has a record of one cache line, in
/// which a word with the message's number shows that it is complete: so a short message arrives by one transfer of one
/// line. The payload of a longer one is in a second ring, in one piece. The receiver reports in a line of the sender's
/// memory what it has taken; the sender reads that line only if it seems to have no room.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/cpu.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

HOCKET_BEGIN_NAMESPACE
namespace host {

/// What a record means.
enum class record_kind : std::uint8_t {
  message,       ///< a whole message
  announcement,  ///< of a long message: see `long_message_details`
  grant,         ///< the receiver of the long message `tag` expects its slices
  slice,         ///< the next bytes of the long message `tag`, which has been granted
  finished       ///< the receiver of the long message `tag` has read it, and the sender may change it
};

struct alignas(platform::cache_line) ring_record {
  static constexpr std::size_t short_bytes = 40;  ///< maximum payload that the record itself contains

  std::atomic<std::uint64_t> word;  ///< number << 32 | kind << 8 | channel; the writer sets it last
  std::uint32_t tag;
  std::uint32_t signature;
  std::uint64_t bytes;  ///< length of the payload, or of the announced message
  std::byte content[short_bytes];

  record_kind kind() const noexcept {
    return static_cast<record_kind>((word.load(std::memory_order_relaxed) >> 8) & 0xFF);
  }
  unsigned channel() const noexcept { return static_cast<unsigned>(word.load(std::memory_order_relaxed) & 0xFF); }
};
static_assert(sizeof(ring_record) == platform::cache_line);

/// What the receiver has taken. In the memory of the sender, written by the receiver.
struct alignas(platform::cache_line) ring_credit {
  std::atomic<std::uint64_t> bytes;  ///< of the ring of payload, including what was skipped at its end
  std::atomic<std::uint32_t> records;
};

/// The sizes of a ring.
struct ring_layout {
  static constexpr std::uint32_t records = 64;                 ///< a power of two
  static constexpr std::size_t most_payload_bytes = 1U << 17;  ///< of the ring of payload
  static constexpr std::size_t least_payload_bytes = 1U << 12;
  static constexpr std::size_t part_multiple = least_payload_bytes / 8;  ///< every `longest()` is a multiple of it

  std::size_t payload_bytes = most_payload_bytes;  ///< a multiple of 8 cache lines

  /// Rings from all of `ranks` ranks together take at most about 8 MiB.
  static constexpr ring_layout for_ranks(std::size_t ranks) noexcept {
    constexpr std::size_t all = std::size_t{8} << 20;
    std::size_t bytes = most_payload_bytes;
    while (bytes > least_payload_bytes && bytes * ranks > all) bytes /= 2;
    return {bytes};
  }
  /// Longest payload of one record: at least seven fit into the ring, wherever the first one begins.
  constexpr std::size_t longest() const noexcept { return payload_bytes / 8; }
  constexpr std::size_t bytes() const noexcept { return records * sizeof(ring_record) + payload_bytes; }
};

namespace detail {

/// Where the next payload begins, in bytes since the ring was made: a payload never wraps around.
class ring_position {
 public:
  std::uint64_t begin(std::size_t bytes, std::size_t capacity) const noexcept {
    const std::size_t rest = capacity - static_cast<std::size_t>(position_ % capacity);
    return bytes <= rest ? position_ : position_ + rest;
  }
  std::uint64_t end(std::size_t bytes, std::size_t capacity) const noexcept {
    constexpr std::size_t line = platform::cache_line;
    return begin(bytes, capacity) + (bytes + line - 1) / line * line;
  }
  void pass(std::size_t bytes, std::size_t capacity) noexcept { position_ = end(bytes, capacity); }
  std::uint64_t value() const noexcept { return position_; }

 private:
  std::uint64_t position_ = 0;
};

}  // namespace detail

/// The sender's end of a ring.
class ring_writer {
 public:
  ring_writer() = default;
  /// `ring` is zeroed memory of the receiver, `credit` zeroed memory of this process.
  ring_writer(std::byte* ring, const ring_credit* credit, ring_layout layout) noexcept
      : records_(reinterpret_cast<ring_record*>(ring)), payload_(ring + ring_layout::records * sizeof(ring_record)),
        credit_(credit), capacity_(layout.payload_bytes) {}

  /// Returns whether a record with `bytes` of payload can be written now, so that `spare` records can still follow.
  bool has_room(std::size_t bytes, std::uint32_t spare) noexcept {
    if (number_ - taken_ >= ring_layout::records - spare) {
      taken_ = credit_->records.load(std::memory_order_acquire);
      if (number_ - taken_ >= ring_layout::records - spare) return false;
    }
    if (bytes <= ring_record::short_bytes) return true;
    const std::uint64_t end = position_.end(bytes, capacity_);
    if (end - taken_bytes_ <= capacity_) return true;
    taken_bytes_ = credit_->bytes.load(std::memory_order_acquire);
    return end - taken_bytes_ <= capacity_;
  }

  /// Writes a record, for which there must be room. `announced`: the length to report, if not that of the payload.
  void write(record_kind kind, unsigned channel, std::uint32_t tag, std::uint32_t signature,
             std::span<const std::byte> payload, std::uint64_t announced) noexcept {
    ring_record& record = records_[number_ % ring_layout::records];
    if (payload.size() > ring_record::short_bytes) {
      copy_lines(payload_ + position_.begin(payload.size(), capacity_) % capacity_, payload);
      position_.pass(payload.size(), capacity_);
    } else if (!payload.empty()) {
      std::memcpy(record.content, payload.data(), payload.size());
    }
    record.tag = tag;
    record.signature = signature;
    record.bytes = announced;
    ++number_;
    const std::uint64_t word = std::uint64_t{number_} << 32 | static_cast<std::uint64_t>(kind) << 8 | channel;
    record.word.store(word, std::memory_order_release);
  }

 private:
  /// The receiver's core has the lines, which it read when they were used last, and will read them next. Requesting all
  /// of them first, and handing over those of a short message, saves a fifth of its time.
  static void copy_lines(std::byte* to, std::span<const std::byte> payload) noexcept {
    constexpr std::size_t most_requested = 4096, most_handed_over = 1024;
    for (std::size_t i = 0; i < std::min(payload.size(), most_requested); i += platform::cache_line) {
      platform::prefetch_to_write(to + i);
    }
    std::memcpy(to, payload.data(), payload.size());
    if (payload.size() > most_handed_over) return;
    for (std::size_t i = 0; i < payload.size(); i += platform::cache_line) platform::hand_over(to + i);
  }

  ring_record* records_ = nullptr;
  std::byte* payload_ = nullptr;
  const ring_credit* credit_ = nullptr;
  std::size_t capacity_ = 0;
  std::uint32_t number_ = 0;  ///< of the last record written
  std::uint32_t taken_ = 0;   ///< records that the receiver has taken, as far as known
  detail::ring_position position_;
  std::uint64_t taken_bytes_ = 0;
};

/// The receiver's end of a ring.
class ring_reader {
 public:
  ring_reader() = default;
  /// `ring` is zeroed memory of this process, `credit` zeroed memory of the sender.
  ring_reader(const std::byte* ring, ring_credit* credit, ring_layout layout) noexcept
      : records_(reinterpret_cast<const ring_record*>(ring)),
        payload_(ring + ring_layout::records * sizeof(ring_record)), credit_(credit), capacity_(layout.payload_bytes) {}

  /// Returns the oldest record that has not been taken; null if none has arrived.
  const ring_record* next() const noexcept {
    const ring_record& record = records_[number_ % ring_layout::records];
    const std::uint64_t word = record.word.load(std::memory_order_acquire);
    return static_cast<std::uint32_t>(word >> 32) == number_ + 1 ? &record : nullptr;
  }

  /// Returns the payload of the oldest record: `bytes` of them, valid until it is taken.
  const std::byte* payload(const ring_record& record, std::size_t bytes) const noexcept {
    return bytes <= ring_record::short_bytes ? record.content
                                             : payload_ + position_.begin(bytes, capacity_) % capacity_;
  }

  /// Takes the oldest record, which has `bytes` of payload. Returns whether the sender may learn of new room.
  bool take(std::size_t bytes) noexcept {
    ++number_;
    if (bytes > ring_record::short_bytes) position_.pass(bytes, capacity_);
    if (number_ - reported_ < ring_layout::records / 4 && position_.value() - reported_bytes_ < capacity_ / 8)
      return false;
    reported_ = number_;
    reported_bytes_ = position_.value();
    credit_->bytes.store(reported_bytes_, std::memory_order_release);
    credit_->records.store(reported_, std::memory_order_release);
    return true;
  }

 private:
  const ring_record* records_ = nullptr;
  const std::byte* payload_ = nullptr;
  ring_credit* credit_ = nullptr;
  std::size_t capacity_ = 0;
  std::uint32_t number_ = 0;  ///< of the last record taken
  std::uint32_t reported_ = 0;
  detail::ring_position position_;
  std::uint64_t reported_bytes_ = 0;
};

}  // namespace host
HOCKET_END_NAMESPACE
