// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Calls that combine elements: all_reduce and reduce_scatter, the latter also with blocks of given lengths.
#pragma once

#include <hocket/collective/host/argument_diagnostics.hpp>
#include <hocket/collective/host/blocks.hpp>
#include <hocket/collective/host/host_call.hpp>
#include <hocket/communicator/last_call.hpp>
#include <hocket/communicator/signature.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>
#include <hocket/kernel/host/element_kernel.hpp>
#include <hocket/operation/adaptors.hpp>
#include <hocket/operation/fixed_tree.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/selection/algorithm.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

template <class Op, class T>
HOCKET_VECTORIZE void prepare_all(const void* op, std::byte* partials, const std::byte* contributions,
                                  std::size_t count) {
  using partial = typename reduction<Op, T>::partial;
  auto* const to = reinterpret_cast<partial*>(partials);
  const auto* const from = reinterpret_cast<const T*>(contributions);
  for (std::size_t i = 0; i < count; ++i) to[i] = reduction<Op, T>::prepare(*static_cast<const Op*>(op), from[i]);
}

template <class Op, class T>
HOCKET_VECTORIZE void finish_all(const void* op, std::byte* results, const std::byte* partials, int ranks,
                                 std::size_t count) {
  using partial = typename reduction<Op, T>::partial;
  auto* const to = reinterpret_cast<T*>(results);
  const auto* const from = reinterpret_cast<const partial*>(partials);
  for (std::size_t i = 0; i < count; ++i) to[i] = reduction<Op, T>::finish(*static_cast<const Op*>(op), from[i], ranks);
}

template <class Op, class T>
inline constexpr preparation preparation_of{&prepare_all<Op, T>, &finish_all<Op, T>};

/// Returns the weakest order in which contributions may be combined.
template <class Op, class T>
constexpr plan::combination_order weakest_order() noexcept {
  if (is_in_fixed_tree<Op>) return plan::combination_order::fixed_tree;
  return is_commutative_v<Op, T> ? plan::combination_order::any_order : plan::combination_order::rank_order;
}

/// Whether the compiler may change the results of floating-point expressions.
#ifdef __FAST_MATH__
inline constexpr bool fast_math = true;
#else
inline constexpr bool fast_math = false;
#endif

/// Returns the caller's operation, or one whose partial results have the wire type.
template <class Op, class T, class Options>
auto travelling_operation(const Op& op, const Options& options) {
  if constexpr (Options::template has<kind::wire>) {
    using wire_type = typename decltype(options.template get<kind::wire>(0))::type;
    constexpr bool arrives = Options::template is_hint<kind::wire> || !loses_values<wire_type, T>;
    static_assert(
        arrives,
        "wire<T>: fractions, or large integers, would be lost in this type: use a smaller floating-point type, such as "
        "bfloat16, for floating-point elements, and no wire type for integers");
    if constexpr (Options::template is_hint<kind::wire> && !can_travel_as<Op, wire_type, T>) {
      return op;
    } else {
      return wired<Op, wire_type>{op};
    }
  } else {
    return op;
  }
}

/// The exactness that the caller requires.
template <class Options>
using exactness_of = typename decltype(std::declval<const Options&>().template get<kind::exactness>(
    exactness_property<same_on_all_ranks_t>{}))::level;

/// Returns the operation that runs: the caller's own, one with a wire type, an exact one, or one that combines in the
/// fixed tree.
template <class Op, class T, class Options>
auto effective_operation(const Op& op, const Options& options) {
  using exactness = exactness_of<Options>;
  if constexpr (std::is_same_v<exactness, fixed_tree_t>) {
    static_assert(
        !fast_math || !is_floating<T>,
        "require(fixed_tree): this source is compiled with -ffast-math, which lets the compiler change results: "
        "compile it without this option");
    auto travels = travelling_operation<Op, T>(op, options);
    if constexpr (is_exact_v<decltype(travels), T>) {
      return travels;  // no order changes a bit
    } else {
      return in_fixed_tree<decltype(travels)>{travels};
    }
  } else if constexpr (std::is_same_v<exactness, rank_count_invariant_t>) {
    using exact = typename rank_count_invariant_operation<Op, T>::type;
    static_assert(!std::is_void_v<exact>,
                  "require(rank_count_invariant): no way to combine this type with this operation gives the same bits "
                  "for any number of ranks; use a sum of float or double, or an exact operation");
    static_assert(!fast_math || !is_floating<T>,
                  "require(rank_count_invariant): this source is compiled with -ffast-math, which lets the compiler "
                  "change results: compile it without this option");
    static_assert(!Options::template has<kind::wire> || Options::template is_hint<kind::wire>,
                  "require(rank_count_invariant) and wire<T> exclude each other: values must be sent unrounded");
    if constexpr (std::is_same_v<exact, Op>) {
      return op;
    } else if constexpr (std::is_same_v<exact, canonical<Op>>) {
      return canonical<Op>{op};
    } else {
      return exact{};
    }
  } else {
    return travelling_operation<Op, T>(op, options);
  }
}

/// Refuses options that such a call can't use. `Effective` is the operation that runs.
template <plan::collective_kind Kind, class Effective, class T, class Options>
constexpr void check_reduction_options() noexcept {
  static_assert(!explain_device_options_of_a_host<Options>() ||
                    Options::template only<kind::algorithm, kind::timeout, kind::stop, kind::wire, kind::observer,
                                           kind::exactness, kind::integrity>,
                "with(...): a reduction can't use one of these properties; wrap it in hint(...) to have it ignored");
  if constexpr (Options::template has<kind::algorithm> && !Options::template is_hint<kind::algorithm>) {
    using algorithm_type = std::remove_cvref_t<decltype(std::declval<const Options&>().template at<kind::algorithm>())>;
    constexpr plan::combination_order needed = weakest_order<Effective, T>();
    constexpr bool fits = order_of<Kind, algorithm_type>() <= needed;
    static_assert(fits || needed != plan::combination_order::fixed_tree,
                  "require(fixed_tree): this algorithm combines in another order than the fixed tree: all_reduce has "
                  "recursive_doubling, halving_doubling, one_shot, two_shot and push, reduce_scatter recursive_halving "
                  "and direct; use one of these, or pass no algorithm");
    static_assert(
        fits || needed == plan::combination_order::fixed_tree,
        "with(...): this algorithm combines operands in another order than that of the ranks, and the operation "
        "is not known to be commutative: give it `static constexpr bool commutative = true`, or use an "
        "algorithm that keeps rank order (all_reduce: recursive_doubling, halving_doubling, double_tree, "
        "one_shot, two_shot, push; reduce_scatter: pairwise, recursive_halving, direct)");
  }
}

/// The signature of a reduction's types. `Op` is the operation that runs: see `effective_operation`.
template <plan::collective_kind Kind, class Op, class T, block_lengths Lengths = block_lengths::equal>
inline constexpr std::uint32_t reduction_signature = mix(call_kind_signature(Kind, Lengths), type_signature<T, Op>());

/// Makes a reduction of `in` by `op`, a result of `effective_operation` that must outlive the call if that blocks.
/// `More` is added to the names of the types.
template <plan::collective_kind Kind, block_lengths Lengths = block_lengths::equal, class... More, class T, class Op>
host_call make_reduction(std::span<const T> in, std::span<T> out, const Op& op, const block_counts& blocks = {}) {
  static_assert(std::is_trivially_copyable_v<Op>);
  host_call call{.name = call_name(Kind, Lengths),
                 .what = {Kind, 0},
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
