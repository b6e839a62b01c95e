// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The positions of the words in device memory by which the streams of several ranks wait for each other. Two signals
/// must never use one word at the same time, so each bank, number and signalling rank has its own word.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/merged_lanes.hpp>

#include <cstddef>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

/// The groups of words of a rank. By tag: early and late signals, and acknowledgements of them (tag 0), as in
/// plan/signal_reuse.hpp. By slot of a message: it can be read (arrivals), and the receiver has read it (receipts).
enum class word_bank : unsigned { early, late, acknowledgements, arrivals, receipts };

/// Offsets of the words for the signals of each peer in the memory that a rank shares.
class word_layout {
 public:
  static constexpr unsigned tags = 5;  ///< number of tags, as in `signal_line`
  static constexpr unsigned slot_count = plan::message_slots;

  explicit word_layout(int ranks) noexcept : ranks_(static_cast<std::size_t>(ranks)) {}

  std::size_t count() const noexcept { return (3 * tags + 2 * slot_count) * ranks_; }
  std::size_t bytes() const noexcept { return count() * sizeof(std::uint32_t); }
  /// `number` is a tag or, for a message, its slot; `signaller` is the rank that sets the word.
  std::size_t offset(word_bank bank, unsigned number, int signaller) const noexcept {
    return ((first_row(bank) + number) * ranks_ + static_cast<std::size_t>(signaller)) * sizeof(std::uint32_t);
  }

 private:
  static std::size_t first_row(word_bank bank) noexcept {
    return bank == word_bank::receipts ? 3 * tags + slot_count : static_cast<unsigned>(bank) * tags;
  }

  std::size_t ranks_;
};

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
