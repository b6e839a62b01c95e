// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Calls that move elements without combining them: all_gather, all_to_all, gather and scatter, also with blocks of given
/// lengths, broadcast and barrier.
#pragma once

#include <hocket/collective/host/blocks.hpp>
#include <hocket/collective/host/host_call.hpp>
#include <hocket/communicator/planned_call.hpp>
#include <hocket/communicator/signature.hpp>
#include <hocket/core/config.hpp>
#include <hocket/kernel/host/element_kernel.hpp>
#include <hocket/plan/plan.hpp>

#include <cstddef>
#include <span>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Makes the call. `in` is empty if the collective has no input. `More` is added to the names of the types.
template <plan::collective_kind Kind, block_lengths Lengths = block_lengths::equal, class... More, class T>
host_call make_move(std::span<const T> in, std::span<T> out, int root = 0, const block_counts& blocks = {}) {
  static constexpr std::uint32_t signature = mix(call_kind_signature(Kind, Lengths), type_signature<T>());
  return {.name = call_name(Kind, Lengths),
          .what = {Kind, root},
          .blocks = blocks,
          .in = reinterpret_cast<const std::byte*>(in.data()),
          .out = reinterpret_cast<std::byte*>(out.data()),
          .in_count = in.size(),
          .out_count = out.size(),
          .element_size = sizeof(T),
          .element_kernel = &kernel::copy_kernel_of<T>,
          .type_signature = signature,
          .types = types_name<T, More...>()};
}

}  // namespace detail
HOCKET_END_NAMESPACE
