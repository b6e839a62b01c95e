// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A queue of messages from one process to another, in memory that both map: the fastest way to send on a host.
///
/// Records are in the receiver's memory, and only the sender writes to them. Each message has a record of one cache line, in
/// which a word with the message's number shows that it is complete: so a short message arrives by one transfer of one
/// line. The payload of a longer one is in a block: see transport/host/block_stack.hpp. The receiver reports in a line
/// of the sender's memory what it has taken; the sender reads that line only if it seems to have no room.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/faster_way.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/core/platform/streaming_copy.hpp>
#include <hocket/core/platform/ticks.hpp>
#include <hocket/transport/host/block_stack.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
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
  grant,         ///< the receiver of the long message `tag` expects all its slices
  slice,         ///< the next bytes of the long message `tag`
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

/// The content of a record whose payload is in a block.
struct payload_place {
  block_stack::index block;
  std::uint16_t left;  ///< number of blocks that the sender then still had
};
static_assert(sizeof(payload_place) <= ring_record::short_bytes);

/// What the receiver has taken and given back. In the memory of the sender, written by the receiver.
struct ring_credit {
  alignas(platform::cache_line) std::atomic<std::uint32_t> records;
  returned_blocks blocks;
};

/// The sizes of a ring and of its blocks.
struct ring_layout {
  static constexpr std::uint32_t records = 64;                             ///< a power of two
  static constexpr std::size_t part_multiple = block_layout::least_bytes;  ///< every `longest()` is a multiple of it

  block_layout blocks;

  /// The blocks that a rank has for all of `ranks` ranks together take at most about 8 MiB, unless ranks are very many.
  static constexpr ring_layout for_ranks(std::size_t ranks) noexcept {
    constexpr std::size_t all = std::size_t{8} << 20, least = std::size_t{1} << 12;
    return {block_layout::within(std::max(least, std::bit_floor(all / ranks)))};
  }
  /// Longest payload of one record.
  constexpr std::size_t longest() const noexcept { return blocks.bytes; }
  constexpr std::size_t bytes() const noexcept { return records * sizeof(ring_record) + blocks.all_bytes(); }
};

/// The sender's end of a ring.
class ring_writer {
 public:
  ring_writer() = default;
  /// `ring` is zeroed memory of the receiver, `credit` zeroed memory of this process.
  ring_writer(std::byte* ring, const ring_credit* credit, block_stack& blocks) noexcept
      : records_(reinterpret_cast<ring_record*>(ring)), credit_(credit), blocks_(&blocks) {}

  /// Returns whether a record with `bytes` of payload can be written now, so that `spare` records can still follow.
  bool has_room(std::size_t bytes, std::uint32_t spare) noexcept {
    if (number_ - taken_ >= ring_layout::records - spare) {
      taken_ = credit_->records.load(std::memory_order_acquire);
      if (number_ - taken_ >= ring_layout::records - spare) return false;
    }
    return bytes <= ring_record::short_bytes || blocks_->available();
  }

  /// Writes a record, for which there must be room. `announced`: the length to report, if not that of the payload.
  void write(record_kind kind, unsigned channel, std::uint32_t tag, std::uint32_t signature,
             std::span<const std::byte> payload, std::uint64_t announced) noexcept {
    ring_record& record = records_[number_ % ring_layout::records];
    if (payload.size() > ring_record::short_bytes) {
      const block_stack::index block = blocks_->take();
      if (payload.size() > most_requested && !blocks_->is_read_here(block)) {
        copy_to_peer(blocks_->at(block), payload);
      } else {
        copy_lines(blocks_->at(block), payload);
      }
      const payload_place place{block, static_cast<std::uint16_t>(blocks_->size())};
      std::memcpy(record.content, &place, sizeof place);
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
    constexpr std::size_t most_handed_over = 1024;
    for (std::size_t i = 0; i < std::min(payload.size(), most_requested); i += platform::cache_line) {
      platform::prefetch_to_write(to + i);
    }
    std::memcpy(to, payload.data(), payload.size());
    if (payload.size() > most_handed_over) return;
    for (std::size_t i = 0; i < payload.size(); i += platform::cache_line) platform::hand_over(to + i);
  }

  /// The receiver's core has the lines, and this core has not, so that ordinary stores fetch each of them. Between cores
  /// that share no cache, that takes seven times as long as streaming stores, which fetch nothing. Otherwise it takes up
  /// to twice as long, but then the receiver finds the lines in a cache.
  void copy_to_peer(std::byte* to, std::span<const std::byte> payload) noexcept {
    const auto chosen = stores_.next();
    const std::uint64_t begin = stores_.measures() ? platform::ticks() : 0;
    if (chosen == hocket::detail::faster_way::way::other) {
      platform::streaming_copy(to, payload.data(), payload.size());
    } else {
      std::memcpy(to, payload.data(), payload.size());
    }
    if (begin != 0) stores_.record(1 + (platform::ticks() - begin) * most_requested / payload.size());
  }

  static constexpr std::size_t most_requested = 4096;

  ring_record* records_ = nullptr;
  const ring_credit* credit_ = nullptr;
  block_stack* blocks_ = nullptr;
  std::uint32_t number_ = 0;              ///< of the last record written
  std::uint32_t taken_ = 0;               ///< records that the receiver has taken, as far as known
  hocket::detail::faster_way stores_{3};  ///< ordinary or streaming ones
};

/// The receiver's end of a ring.
class ring_reader {
 public:
  ring_reader() = default;
  /// `ring` is zeroed memory of this process, `credit` zeroed memory of the sender.
  ring_reader(const std::byte* ring, ring_credit* credit, block_stack& blocks) noexcept
      : records_(reinterpret_cast<const ring_record*>(ring)), credit_(credit), blocks_(&blocks) {}

  /// Returns the oldest record that has not been taken; null if none has arrived.
  const ring_record* next() const noexcept {
    const ring_record& record = records_[number_ % ring_layout::records];
    const std::uint64_t word = record.word.load(std::memory_order_acquire);
    return static_cast<std::uint32_t>(word >> 32) == number_ + 1 ? &record : nullptr;
  }

  /// Returns the payload of the oldest record: `bytes` of them, valid until it is taken.
  const std::byte* payload(const ring_record& record, std::size_t bytes) const noexcept {
    return bytes <= ring_record::short_bytes ? record.content : blocks_->at(place_of(record).block);
  }

  /// Takes the oldest record, which has `bytes` of payload. Returns whether the sender may learn of new room.
  bool take(std::size_t bytes) noexcept {
    bool has_given = false;
    if (bytes > ring_record::short_bytes) {
      const payload_place place = place_of(records_[number_ % ring_layout::records]);
      blocks_->put(place.block);
      has_given = blocks_->return_surplus(place.left);
    }
    ++number_;
    if (number_ - reported_ < ring_layout::records / 4) return has_given;
    reported_ = number_;
    credit_->records.store(reported_, std::memory_order_release);
    return true;
  }

 private:
  static payload_place place_of(const ring_record& record) noexcept {
    payload_place place;
    std::memcpy(&place, record.content, sizeof place);
    return place;
  }

  const ring_record* records_ = nullptr;
  ring_credit* credit_ = nullptr;
  block_stack* blocks_ = nullptr;
  std::uint32_t number_ = 0;  ///< of the last record taken
  std::uint32_t reported_ = 0;
};

}  // namespace host
HOCKET_END_NAMESPACE
