// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The operation that a reduction runs: the caller's own, or one that the options make of it, with another wire type,
/// exact, or in the order of the fixed tree. `reduction_options` in option_diagnostics.hpp finds the options for which
/// there is none.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>
#include <hocket/operation/adaptors.hpp>
#include <hocket/operation/fixed_tree.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/plan/plan.hpp>

#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Returns the weakest order in which contributions may be combined.
template <class Op, class T>
constexpr plan::combination_order weakest_order() noexcept {
  if (is_in_fixed_tree<Op>) return plan::combination_order::fixed_tree;
  return is_commutative_v<Op, T> ? plan::combination_order::any_order : plan::combination_order::rank_order;
}

/// The wire type that the options name.
template <class Options>
using wire_type_of = typename decltype(std::declval<const Options&>().template get<kind::wire>(0))::type;

/// The exactness that the caller requires.
template <class Options>
using exactness_of = typename decltype(std::declval<const Options&>().template get<kind::exactness>(
    exactness_property<same_on_all_ranks_t>{}))::level;

/// Returns the caller's operation, or one whose partial results have the wire type.
template <class Op, class T, class Options>
auto travelling_operation(const Op& op, const Options&) {
  if constexpr (Options::template has<kind::wire>) {
    using wire_type = wire_type_of<Options>;
    if constexpr (Options::template is_hint<kind::wire> && !can_travel_as<Op, wire_type, T>) {
      return op;
    } else {
      return wired<Op, wire_type>{op};
    }
  } else {
    return op;
  }
}

/// Returns the operation that runs.
template <class Op, class T, class Options>
auto effective_operation(const Op& op, const Options& options) {
  using exactness = exactness_of<Options>;
  if constexpr (std::is_same_v<exactness, fixed_tree_t>) {
    auto travels = travelling_operation<Op, T>(op, options);
    if constexpr (is_exact_v<decltype(travels), T>) {
      return travels;  // no order changes a bit
    } else {
      return in_fixed_tree<decltype(travels)>{travels};
    }
  } else if constexpr (std::is_same_v<exactness, rank_count_invariant_t>) {
    using exact = typename rank_count_invariant_operation<Op, T>::type;
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

/// The type of the operation that runs.
template <class Op, class T, class Options>
using effective_operation_t =
    decltype(effective_operation<Op, T>(std::declval<const Op&>(), std::declval<const Options&>()));

}  // namespace detail
HOCKET_END_NAMESPACE
