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

/// Range of elements of the whole vector that a rank's buffer holds: all, only the rank's own block, or none.
inline plan::extent extent_of(const plan::collective& what, plan::region where, const plan::layout& layout,
                              int rank) noexcept {
  switch (where == plan::region::in ? what.in_part(rank) : what.out_part(rank)) {
    case plan::buffer_part::nothing: return {};
    case plan::buffer_part::own_block: return layout.block(static_cast<std::uint32_t>(rank));
    case plan::buffer_part::whole: break;
  }
  return {0, layout.size()};
}

/// Index in the whole vector of the first element of a rank's buffer.
inline std::size_t origin_of(const plan::collective& what, plan::region where, const plan::layout& layout,
                             int rank) noexcept {
  return extent_of(what, where, layout, rank).begin;
}

}  // namespace detail
HOCKET_END_NAMESPACE
