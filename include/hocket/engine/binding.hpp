// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a plan is run on: the step from chunk numbers to memory.
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
  std::uint32_t signature = 0;  ///< what must be equal on all ranks, folded into 32 bits
  step_observer observer;
  bool checksummed = false;  ///< messages carry a checksum
  /// Of `out`, where its blocks have other lengths than those of `in`, and every block goes from the `in` of one rank
  /// to the `out` of another; null: `layout` is that of both.
  const plan::layout* out_layout = nullptr;
  /// Where `in` and `out` are memory of a device: who copies there. The plan moves elements by messages alone then.
  device_copies* on_device = nullptr;
};

/// The elements of the whole vector that a rank's buffer holds: all, or only the rank's own block.
inline plan::extent extent_of(plan::collective_kind kind, plan::region where, const plan::layout& layout,
                              int rank) noexcept {
  const bool own_block_only = (kind == plan::collective_kind::reduce_scatter && where == plan::region::out) ||
                              (kind == plan::collective_kind::all_gather && where == plan::region::in);
  return own_block_only ? layout.block(static_cast<std::uint32_t>(rank)) : plan::extent{0, layout.size()};
}

/// The element of the whole vector with which a rank's buffer begins.
inline std::size_t origin_of(plan::collective_kind kind, plan::region where, const plan::layout& layout,
                             int rank) noexcept {
  return extent_of(kind, where, layout, rank).begin;
}

}  // namespace detail
HOCKET_END_NAMESPACE
