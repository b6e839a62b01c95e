// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The order of combination that `require(fixed_tree)` prescribes for every algorithm, so that a sum of floats has the
/// same bits with any algorithm and any transport, on a host or a device.
///
/// The tree over n contributions, with n = 2^k + e: the first 2e are combined in pairs of neighbours. That leaves 2^k
/// values, which are combined in pairs of neighbours again and again. Each combination is rounded to the type in which
/// partial results are sent. Recursive doubling and halving use this order anyway; code that combines many
/// contributions in one step uses it if the type of the operation is `in_fixed_tree<Op>`.
///
///     n = 5      ((0 1) 2) (3 4)          n = 6      ((0 1) (2 3)) (4 5)          n = 8   ((0 1)(2 3)) ((4 5)(6 7))
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/operation/traits.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// `Op`, whose contributions are combined in the fixed tree.
template <class Op>
struct in_fixed_tree {
  Op op;
};

template <class Op>
inline constexpr bool is_in_fixed_tree = false;
template <class Op>
inline constexpr bool is_in_fixed_tree<in_fixed_tree<Op>> = true;

/// Returns the number of values after the first pairs: the largest power of two that is not above `contributions`.
HOCKET_HOST_DEVICE constexpr std::size_t members_of_fixed_tree(std::size_t contributions) noexcept {
  std::size_t members = 1;
  while (members <= contributions / 2) members *= 2;
  return members;
}

/// Largest number of values that `walk_fixed_tree` stores at the same time.
inline constexpr std::size_t fixed_tree_depth = 34;  // for 2^32 contributions

/// Walks the tree over `contributions`, at least one. `put(level, i)` must store contribution i at a level, and
/// `merge(level)` must replace the value stored there by its combination with the value at the next level. The result
/// is at level 0.
HOCKET_DETAIL_CALLS_USERS
template <class Put, class Merge>
HOCKET_HOST_DEVICE constexpr void walk_fixed_tree(std::size_t contributions, const Put& put, const Merge& merge) {
  const std::size_t members = members_of_fixed_tree(contributions);
  const std::size_t pairs = contributions - members;
  std::size_t level = 0;
  for (std::size_t member = 0; member < members; ++member, ++level) {
    put(level, member < pairs ? 2 * member : member + pairs);
    if (member < pairs) {
      put(level + 1, 2 * member + 1);
      merge(level);
    }
    for (std::size_t complete = member; complete % 2 == 1; complete /= 2) merge(--level);
  }
}

/// The tree over a number of contributions that is known at compile time. `Values` has `read(i)`, which returns
/// contribution i as a partial result, and `combine(a, b)` for partial results.
template <std::size_t Contributions>
struct fixed_tree_over {
  static constexpr std::size_t members = members_of_fixed_tree(Contributions);
  static constexpr std::size_t pairs = Contributions - members;

  HOCKET_DETAIL_CALLS_USERS
  template <std::size_t First = 0, std::size_t Members = members, class Values>
  HOCKET_HOST_DEVICE static constexpr auto value(const Values& values) {
    if constexpr (Members > 1) {
      const auto left = value<First, Members / 2>(values);
      return values.combine(left, value<First + Members / 2, Members / 2>(values));
    } else if constexpr (First < pairs) {
      return values.combine(values.read(2 * First), values.read(2 * First + 1));
    } else {
      return values.read(First + pairs);
    }
  }
};

}  // namespace detail

template <class Op, class T>
struct is_commutative<detail::in_fixed_tree<Op>, T> : is_commutative<Op, T> {};

template <class Op, class T>
struct reduction<detail::in_fixed_tree<Op>, T> {
  using plain = reduction<Op, T>;
  using partial = typename plain::partial;
  using accumulator = typename plain::accumulator;
  static constexpr bool prepares = plain::prepares;

  HOCKET_DETAIL_CALLS_USERS
  HOCKET_HOST_DEVICE static constexpr partial prepare(const detail::in_fixed_tree<Op>& op, const T& value) {
    return plain::prepare(op.op, value);
  }
  HOCKET_DETAIL_CALLS_USERS
  HOCKET_HOST_DEVICE static constexpr accumulator combine(const detail::in_fixed_tree<Op>& op, const accumulator& a,
                                                          const accumulator& b) {
    return plain::combine(op.op, a, b);
  }
  /// Combines and rounds: one node of the tree.
  HOCKET_DETAIL_CALLS_USERS
  HOCKET_HOST_DEVICE static constexpr partial combine_partials(const detail::in_fixed_tree<Op>& op, const partial& a,
                                                               const partial& b) {
    return static_cast<partial>(combine(op, static_cast<accumulator>(a), static_cast<accumulator>(b)));
  }
  HOCKET_DETAIL_CALLS_USERS
  HOCKET_HOST_DEVICE static constexpr T finish(const detail::in_fixed_tree<Op>& op, const partial& value, int ranks) {
    return plain::finish(op.op, value, ranks);
  }
};

HOCKET_END_NAMESPACE
