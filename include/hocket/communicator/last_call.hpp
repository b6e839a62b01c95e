// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a call asks for, and the plan that was chosen for it.
///
/// Programs make equal calls over and over. Choosing costs more than a hundred nanoseconds and is a pure function of
/// what was asked for, so a communicator remembers the answer to the last question.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/collective/barrier.hpp>
#include <hocket/plan/layout.hpp>
#include <hocket/plan/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Whether the blocks of a call differ in length, and who knows their lengths.
enum class block_lengths : std::uint8_t {
  equal,
  known_to_all,   ///< every rank knows the length of every block
  known_to_pairs  ///< each rank knows of the blocks that it sends and receives
};

/// A call before a plan was chosen.
struct call_request {
  plan::collective what;
  std::size_t block_elements = 0;  ///< elements of one block of the vector, the longest if they differ
  std::size_t element_size = 1;    ///< of partial results
  plan::combination_order order = plan::combination_order::any_order;  ///< the weakest that will do
  bool in_place = false;
  bool checksummed = false;
  bool on_device = false;  ///< messages carry memory of devices, which no peer reads by itself
  std::uint32_t type_signature = 0;
  const char* types = "";  ///< for people
  block_lengths lengths = block_lengths::equal;
  std::uint32_t lengths_signature = 0;  ///< stands for the lengths of all blocks
  std::size_t total_elements = 0;       ///< of all blocks, where they differ and all ranks know them
  std::uint32_t agreement = 0;          ///< what else all ranks must have alike: see core/agreement.hpp

  friend constexpr bool operator==(const call_request&, const call_request&) = default;
};

/// Everything known of a call once its plan is chosen.
struct planned_call {
  plan::any_algorithm plan = plan::dissemination_barrier{};
  std::size_t segment_elements = std::numeric_limits<std::size_t>::max();  ///< how much of a block it takes at once
  plan::layout layout;  ///< of equal blocks; where lengths are given, the call knows better
  std::uint32_t signature = 0;
  bool checksummed = false;
  const char* types = "";
  bool is_part = false;           ///< of a call that has numbered its parts, and put itself into the history
  std::uint32_t part_number = 0;  ///< sequence number of this part
};

/// How many operations, one after the other, a call takes that can move `segment` elements of each block at once.
constexpr std::uint32_t segments_of(std::size_t block_elements, std::size_t segment) noexcept {
  return static_cast<std::uint32_t>(block_elements <= segment ? 1 : (block_elements + segment - 1) / segment);
}

/// A call that named no algorithm, and its plan.
class last_call {
 public:
  /// Null if another call was the last.
  const planned_call* find(const call_request& asked) const noexcept {
    return known_ && known_->asked == asked ? &known_->planned : nullptr;
  }
  void remember(const call_request& asked, const planned_call& planned) { known_ = pair{asked, planned}; }

 private:
  struct pair {
    call_request asked;
    planned_call planned;
  };
  std::optional<pair> known_;
};

}  // namespace detail
HOCKET_END_NAMESPACE
