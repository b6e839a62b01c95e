// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Calls that combine elements: all_reduce, reduce, and reduce_scatter, the latter also with blocks of given lengths.
#pragma once

#include <hocket/collective/host/blocks.hpp>
#include <hocket/collective/host/effective_operation.hpp>
#include <hocket/collective/host/host_call.hpp>
#include <hocket/communicator/planned_call.hpp>
#include <hocket/communicator/signature.hpp>
#include <hocket/core/config.hpp>
#include <hocket/kernel/host/element_kernel.hpp>
#include <hocket/kernel/host/preparation.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/plan/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

template <class Op, class T>
inline constexpr preparation preparation_of{&kernel::prepare_elements<Op, T>, &kernel::finish_elements<Op, T>};

/// The signature of a reduction's types. `Op` is the operation that runs: see `effective_operation`.
template <plan::collective_kind Kind, class Op, class T, block_lengths Lengths = block_lengths::equal>
inline constexpr std::uint32_t reduction_signature = mix(call_kind_signature(Kind, Lengths), type_signature<T, Op>());

/// Makes a reduction of `in` by `op`, a result of `effective_operation` that must outlive the call if that blocks.
/// `More` is added to the names of the types.
template <plan::collective_kind Kind, block_lengths Lengths = block_lengths::equal, class... More, class T, class Op>
host_call make_reduction(std::span<const T> in, std::span<T> out, const Op& op, int root = 0,
                         const block_counts& blocks = {}) {
  static_assert(std::is_trivially_copyable_v<Op>);
  host_call call{.name = call_name(Kind, Lengths),
                 .what = {Kind, root},
                 .blocks = blocks,
                 .in = reinterpret_cast<const std::byte*>(in.data()),
                 .out = reinterpret_cast<std::byte*>(out.data()),
                 .in_count = in.size(),
                 .out_count = out.size(),
                 .element_size = sizeof(T),
                 .element_kernel = &kernel::element_kernel_of<Op, T>,
                 .operation = {&op, sizeof(Op), alignof(Op)},
                 .order = weakest_order<Op, T>(),
                 .type_signature = reduction_signature<Kind, Op, T, Lengths>,
                 .types = types_name<T, Op, More...>()};
  if constexpr (reduction<Op, T>::prepares) call.prepares = &preparation_of<Op, T>;
  return call;
}

}  // namespace detail
HOCKET_END_NAMESPACE
