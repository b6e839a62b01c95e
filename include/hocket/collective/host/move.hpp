// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Calls that move elements without combining them: all_gather and all_to_all, also with blocks of given lengths,
/// broadcast and barrier.
#pragma once

#include <hocket/collective/host/argument_diagnostics.hpp>
#include <hocket/collective/host/blocks.hpp>
#include <hocket/collective/host/host_call.hpp>
#include <hocket/communicator/last_call.hpp>
#include <hocket/communicator/signature.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>
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

/// Refuses options that such a call can't use.
template <class Options>
constexpr void check_move_options() noexcept {
  static_assert(!explain_device_options_of_a_host<Options>() ||
                    Options::template only<kind::algorithm, kind::timeout, kind::stop, kind::observer, kind::integrity>,
                "with(...): this operation combines nothing, so it can't use one of these properties; wrap it in "
                "hint(...) to have it ignored");
}

}  // namespace detail
HOCKET_END_NAMESPACE
