// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The memory through which the ranks of a communicator signal, push and stage, with the same layout on every rank.
///
/// Each rank owns one window; peers write flags into it. Every operation in flight uses the slot of its sequence
/// number, and in it one pair of cache lines per peer, so that no two writers share a line:
///
///     header | slot 0: push lines of all peers, signal lines of all peers | slot 1 … | staging of slot 0, 1, …
///
/// A flag is a word {sequence, signature}: one comparison distinguishes "not yet", "arrived" and "the peer's call
/// differs". A slot may be written again only when its owner has completed the operation that used it before. A rank
/// that has begun operation s has completed all up to s - `most_in_flight`, so any flag of operation s implies that
/// slot s + 1 is free; a rank that gets no flag from a peer reads the peer's header.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/transport/concept.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Maximum number of operations that a rank has in flight on one communicator: one less than there are slots.
inline constexpr std::int32_t most_in_flight = transport::window - 1;

using flag_word = std::uint64_t;

constexpr flag_word make_flag(std::uint32_t sequence, std::uint32_t signature) noexcept {
  return (static_cast<flag_word>(sequence) << 32) | signature;
}

/// True if `word` is a flag of that operation, with any signature. An unwritten word (0) never is, also when sequence
/// numbers have wrapped around to 0.
constexpr bool is_of_operation(flag_word word, std::uint32_t sequence) noexcept {
  return word != 0 && static_cast<std::uint32_t>(word >> 32) == sequence;
}

/// Payload and flag in one line: the fastest way to send a few bytes to a peer.
struct alignas(platform::cache_line) push_line {
  static constexpr std::size_t capacity = 56;

  std::byte payload[capacity];
  std::atomic<flag_word> word;
};
static_assert(sizeof(push_line) == platform::cache_line);

/// The flags of one peer, and handles by which its buffers can be read.
struct alignas(platform::cache_line) signal_line {
  static constexpr unsigned tags = 5;

  std::atomic<flag_word> words[tags];
  std::atomic<std::uint64_t> in;      ///< handle of the writer's `in`, or of the reader's block in it; 0: staged
  std::atomic<std::uint64_t> out;     ///< handle of the writer's `out`; 0: staged
  std::atomic<std::uint64_t> length;  ///< of the reader's block, in elements, if only two ranks know it
};
static_assert(sizeof(signal_line) == platform::cache_line);

/// Whether a rank is in a call.
namespace occupancy {
inline constexpr std::uint32_t none = 0;
inline constexpr std::uint32_t reads = 1;          ///< in a call that may read peers' buffers
inline constexpr std::uint32_t without_reads = 2;  ///< in a call that does not
}  // namespace occupancy

struct alignas(platform::cache_line) window_header {
  std::atomic<std::uint32_t> completed;  ///< all operations up to this sequence number are complete on this rank
  std::atomic<std::uint32_t> occupied;   ///< see `occupancy`
  /// Written by peers: the communicator has failed, and their buffers may become invalid.
  alignas(platform::cache_line) std::atomic<std::uint32_t> revoked;
};

/// Offsets within a window of `ranks` ranks with `staging_bytes` of staging for `in`, and the same for `out`, per slot.
struct window_layout {
  std::size_t ranks = 0;
  std::size_t staging_bytes = 0;

  constexpr std::size_t slots_begin() const noexcept { return sizeof(window_header); }
  constexpr std::size_t slot_bytes() const noexcept { return ranks * (sizeof(push_line) + sizeof(signal_line)); }
  constexpr std::size_t staging_begin() const noexcept {
    const std::size_t end = slots_begin() + transport::window * slot_bytes();
    return (end + 4095) / 4096 * 4096;
  }
  constexpr std::size_t size() const noexcept {
    return staging_bytes == 0 ? staging_begin() : staging_begin() + transport::window * 2 * staging_bytes;
  }

  window_header& header(std::byte* window) const noexcept { return *reinterpret_cast<window_header*>(window); }

  push_line& push(std::byte* window, unsigned slot, int writer) const noexcept {
    return reinterpret_cast<push_line*>(window + slots_begin() + slot * slot_bytes())[writer];
  }
  signal_line& signal(std::byte* window, unsigned slot, int writer) const noexcept {
    auto* const lines = window + slots_begin() + slot * slot_bytes() + ranks * sizeof(push_line);
    return reinterpret_cast<signal_line*>(lines)[writer];
  }
  std::byte* staged_in(std::byte* window, unsigned slot) const noexcept {
    return window + staging_begin() + slot * 2 * staging_bytes;
  }
  std::byte* staged_out(std::byte* window, unsigned slot) const noexcept {
    return staged_in(window, slot) + staging_bytes;
  }
};

}  // namespace detail
HOCKET_END_NAMESPACE
