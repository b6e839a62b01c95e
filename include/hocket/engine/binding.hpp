// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Arguments on which a plan is run: they map chunk numbers to memory.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/engine/device_copies.hpp>
#include <hocket/engine/step_observer.hpp>
#include <hocket/kernel/host/element_kernel.hpp>
#include <hocket/plan/layout.hpp>
#include <hocket/plan/plan.hpp>

#include <cstddef>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// One plan, bound to buffers, an element type and an operation. The buffers hold partial results (see
/// `reduction::partial`); `in` may equal `out`.
struct binding {
  plan::any_algorithm plan;
  plan::layout layout;
  const kernel::element_kernel* element_kernel = nullptr;
  const void* operation = nullptr;  ///< passed to the element kernel
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::uint32_t signature = 0;  ///< hash of what must be equal on all ranks
  step_observer observer;
  bool checksummed = false;  ///< messages carry a checksum
  /// Layout of `out`, if its blocks differ in length from those of `in` and every block moves from the `in` of one rank
  /// to the `out` of another; null: `layout` applies to both.
  const plan::layout* out_layout = nullptr;
  /// If `in` and `out` are device memory: performs local copies. The plan then moves elements only by messages.
  device_copies* on_device = nullptr;
};

/// Range of elements of the whole vector that a rank's buffer holds: all, or only the rank's own block.
inline plan::extent extent_of(plan::collective_kind kind, plan::region where, const plan::layout& layout,
                              int rank) noexcept {
  const bool own_block_only = (kind == plan::collective_kind::reduce_scatter && where == plan::region::out) ||
                              (kind == plan::collective_kind::all_gather && where == plan::region::in);
  return own_block_only ? layout.block(static_cast<std::uint32_t>(rank)) : plan::extent{0, layout.size()};
}

/// Index in the whole vector of the first element of a rank's buffer.
inline std::size_t origin_of(plan::collective_kind kind, plan::region where, const plan::layout& layout,
                             int rank) noexcept {
  return extent_of(kind, where, layout, rank).begin;
}

}  // namespace detail
HOCKET_END_NAMESPACE
