// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The layout of the words in device memory by which streams of several ranks are ordered. Two signals must never use
/// one word at the same time: a signal's word is chosen by its meaning, its number and its sender.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/merged_lanes.hpp>

#include <cstddef>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

/// The groups of words of a rank: see plan/signal_reuse.hpp. For a message, a word of its slot signals the receiver
/// that it can be read, and another one signals its receipt to the sender.
enum class word_bank : unsigned { early, late, acknowledgements, arrivals, receipts };

/// Offsets of the words for the signals of each peer in the memory that a rank offers.
class word_layout {
 public:
  static constexpr unsigned tags = 5;  ///< as many as the engine on the host has
  static constexpr unsigned slots = plan::message_slots;

  explicit word_layout(int ranks) noexcept : ranks_(static_cast<std::size_t>(ranks)) {}

  std::size_t count() const noexcept { return (3 * tags + 2 * slots) * ranks_; }
  std::size_t bytes() const noexcept { return count() * sizeof(std::uint32_t); }
  /// `number` is a tag or, for a message, its slot.
  std::size_t offset(word_bank bank, unsigned number, int from) const noexcept {
    return ((first_line(bank) + number) * ranks_ + static_cast<std::size_t>(from)) * sizeof(std::uint32_t);
  }

 private:
  static std::size_t first_line(word_bank bank) noexcept {
    return bank == word_bank::receipts ? 3 * tags + slots : static_cast<unsigned>(bank) * tags;
  }

  std::size_t ranks_;
};

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
