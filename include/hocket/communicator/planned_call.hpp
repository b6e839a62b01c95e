// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a call asks for, and the plan that was chosen for it.
///
/// Programs repeat equal calls. Selection takes more than 100 ns and is a pure function of the request, so a
/// communicator remembers the plans of a few calls.
#pragma once

#include <hocket/communicator/short_plan.hpp>
#include <hocket/core/config.hpp>
#include <hocket/plan/collective/barrier.hpp>
#include <hocket/plan/layout.hpp>
#include <hocket/plan/plan.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

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
  const char* plan_name = "";  ///< for the call log, which may outlive the plan: see `call_log::plan_name`
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

/// A call with its plan in two forms.
struct remembered_call {
  call_request asked;
  planned_call planned;
  short_plan steps;
};

/// Recent calls without a named algorithm. A call replaces one with the same hash.
class remembered_calls {
 public:
  /// Returns the remembered call; null if there is none. Valid until the next call is remembered.
  const remembered_call* find(const call_request& asked) const noexcept {
    const remembered_call* const known = calls_[place_of(asked)].get();
    return known != nullptr && known->asked == asked ? known : nullptr;
  }
  /// Returns the entry for a call that is not remembered, which still has the call that it replaces.
  remembered_call& replace(const call_request& asked) { return made(calls_[place_of(asked)]); }
  /// Returns the entry for a call whose algorithm the caller has named. It is never found.
  remembered_call& replace_named() { return made(named_); }

 private:
  static constexpr std::size_t places = 8;

  static std::size_t place_of(const call_request& asked) noexcept {
    const std::uint64_t key = asked.block_elements ^ (std::uint64_t{asked.type_signature} << 32) ^
                              (std::uint64_t{asked.lengths_signature ^ asked.agreement} << 16) ^
                              static_cast<std::uint64_t>(asked.what.root) ^ (std::uint64_t{asked.in_place} << 61) ^
                              (std::uint64_t{asked.has_repeatable_choice} << 62);
    return static_cast<std::size_t>(key * 0x9E37'79B9'7F4A'7C15U >> 61);  // Fibonacci hashing
  }
  static remembered_call& made(std::unique_ptr<remembered_call>& place) {
    if (place == nullptr) place = std::make_unique<remembered_call>();
    return *place;
  }

  std::array<std::unique_ptr<remembered_call>, places> calls_;
  std::unique_ptr<remembered_call> named_;
};

}  // namespace detail
HOCKET_END_NAMESPACE
