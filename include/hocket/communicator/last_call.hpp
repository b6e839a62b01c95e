// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a call asks for, and the plan that was chosen for it.
///
/// Programs repeat equal calls. Selection takes more than 100 ns and is a pure function of the request, so a
/// communicator caches the result of the last selection.
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

/// Whether the blocks of a call differ in length, and which ranks know their lengths.
enum class block_lengths : std::uint8_t {
  equal,
  known_to_all,   ///< every rank knows the length of every block
  known_to_pairs  ///< each rank knows the lengths of the blocks that it sends and receives
};

/// A call before a plan was chosen.
struct call_request {
  plan::collective what;
  std::size_t block_elements = 0;  ///< elements of one block of the vector, the longest if they differ
  std::size_t element_size = 1;    ///< of a partial result, in bytes
  plan::combination_order order = plan::combination_order::any_order;  ///< the weakest order that is acceptable
  bool in_place = false;
  bool checksummed = false;
  bool on_device = false;              ///< messages carry device memory, which peers can't read directly
  bool has_repeatable_choice = false;  ///< of an algorithm: it must be the same in each run
  std::uint32_t type_signature = 0;
  const char* types = "";  ///< for messages to the user
  block_lengths lengths = block_lengths::equal;
  std::uint32_t lengths_signature = 0;  ///< hash of the lengths of all blocks
  std::size_t total_elements = 0;       ///< of all blocks, if they differ and all ranks know them
  std::uint32_t agreement = 0;          ///< hash of what else must be equal on all ranks: see core/agreement.hpp

  friend constexpr bool operator==(const call_request&, const call_request&) = default;
};

/// A call with its plan.
struct planned_call {
  plan::any_algorithm plan = plan::dissemination_barrier{};
  std::size_t segment_elements = std::numeric_limits<std::size_t>::max();  ///< elements of each block per operation
  plan::layout layout;  ///< of equal blocks; if lengths are given, the call replaces it
  std::uint32_t signature = 0;
  bool checksummed = false;
  const char* types = "";
  bool is_part = false;           ///< of a call that has numbered its parts and added itself to the history
  std::uint32_t part_number = 0;  ///< sequence number of this part
  unsigned performed = 0;         ///< actions of the only lane of this part that have been performed
};

/// Number of consecutive operations of a call that can move `segment` elements of each block at a time.
constexpr std::uint32_t segments_of(std::size_t block_elements, std::size_t segment) noexcept {
  return static_cast<std::uint32_t>(block_elements <= segment ? 1 : (block_elements + segment - 1) / segment);
}

/// The last call without a named algorithm, and its plan.
class last_call {
 public:
  /// Returns the plan of `asked`; null if it is not the remembered call.
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
