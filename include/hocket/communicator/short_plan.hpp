// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The actions of a plan on one rank, with their places in memory computed in advance: for short calls that repeat.
///
/// For a few bytes, asking a plan for its actions and computing where their operands are takes as long as the
/// communication. Both depend only on what a communicator remembers of a call, and not on its buffers.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/action.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// A copy, send, receive or receive_reduce of elements that are consecutive in memory.
struct short_step {
  plan::action_kind kind = plan::action_kind::copy;
  plan::region from = plan::region::none;
  plan::region to = plan::region::none;
  bool message_first = false;  ///< see `plan::action`
  std::uint8_t channel = 0;
  std::int32_t peer = 0;
  std::uint32_t count = 0;  ///< elements
  std::size_t bytes = 0;
  std::size_t from_at = 0;  ///< bytes after the begin of the buffer
  std::size_t to_at = 0;
};

struct short_plan {
  static constexpr unsigned most_steps = 128;

  bool is_usable = false;  ///< whether calls with this plan can be run by its steps
  std::vector<short_step> steps;
  std::vector<std::size_t> offsets;  ///< of the blocks, in elements, and the end of the last one; none: equal blocks
  std::size_t scratch_bytes = 0;

  /// Whether the steps are those for blocks of these lengths; none: equal blocks. Requests with other lengths may have
  /// the same hash of them.
  bool has_lengths(std::span<const std::size_t> lengths) const noexcept {
    if (offsets.size() != (lengths.empty() ? 0 : lengths.size() + 1)) return false;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (offsets[i + 1] - offsets[i] != lengths[i]) return false;
    }
    return true;
  }
};

}  // namespace detail
HOCKET_END_NAMESPACE
