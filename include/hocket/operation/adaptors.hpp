// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Operations made from operations: with another wire type, or exact.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/operation/exact_sum.hpp>
#include <hocket/operation/traits.hpp>

#include <concepts>
#include <functional>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// `Op` on values that are sent and stored as `Wire`, and combined in the accumulator type of the elements.
template <class Op, class Wire>
struct wired {
  Op op;
};

/// True if values of T that are sent as `Wire` may arrive as something other than the nearest `Wire`: fractions
/// truncated to integers, or large integers truncated.
template <class Wire, class T>
inline constexpr bool loses_values =
    std::is_integral_v<Wire> &&
    (is_floating<T> || (std::is_integral_v<T> && !requires(const T& value) { Wire{value}; }));

/// True if `Op` can combine elements of T that are sent as `Wire`.
template <class Op, class Wire, class T>
concept can_travel_as = callable_operation<Op, accumulator_t<T>> && element<Wire> && !loses_values<Wire, T> &&
                        requires(const accumulator_t<T>& wide, const Wire& narrow) {
                          static_cast<Wire>(wide);
                          static_cast<accumulator_t<T>>(narrow);
                        };

/// A sum that is rounded once, after all contributions: the same bits for any order and any number of ranks.
struct exact_plus {
  static constexpr bool commutative = true;
  static constexpr bool exact = true;

  HOCKET_DETAIL_CALLS_USERS
  template <class T>
  HOCKET_HOST_DEVICE static constexpr exact_sum<T> prepare(const T& value) {
    return exact_sum<T>(value);
  }
  HOCKET_DETAIL_CALLS_USERS
  template <class T>
  HOCKET_HOST_DEVICE static constexpr exact_sum<T> combine(const exact_sum<T>& a, const exact_sum<T>& b) {
    return a + b;
  }
  HOCKET_DETAIL_CALLS_USERS
  template <class T>
  HOCKET_HOST_DEVICE static constexpr T finish(const exact_sum<T>& sum, int) {
    return sum.value();
  }
};

/// `Op` where combining a value with itself gives that value, or the representative of all values that `Op` treats as
/// equal: the one NaN, or 1 for true. Contributions are first combined with themselves: one rank has no others.
template <class Op>
struct canonical {
  Op op;
};

template <class Op>
struct is_plus : std::false_type {};
template <class U>
struct is_plus<std::plus<U>> : std::true_type {};

/// Types for which `exact_sum` is defined.
template <class T>
concept exactly_summable = std::same_as<T, float> || std::same_as<T, double>;

/// The operation that gives the same bits for any number of ranks; `void` if there is none.
template <class Op, class T>
struct rank_count_invariant_operation {
  using type = void;
};
template <class Op, class T>
  requires is_exact_v<Op, T>
struct rank_count_invariant_operation<Op, T> {
  using type = std::conditional_t<gives_only_some<Op, T>, canonical<Op>, Op>;
};
template <class Op, class T>
  requires(is_plus<Op>::value && exactly_summable<T> && !is_exact_v<Op, T>)
struct rank_count_invariant_operation<Op, T> {
  using type = exact_plus;
};

}  // namespace detail

/// Addition of exact sums is exact.
template <class U, class T>
struct is_exact<std::plus<U>, exact_sum<T>> : std::true_type {};
template <class U, class T>
struct is_commutative<std::plus<U>, exact_sum<T>> : std::true_type {};

template <class Op, class Wire, class T>
struct is_commutative<detail::wired<Op, Wire>, T> : is_commutative<Op, T> {};

template <class Op, class T>
struct is_commutative<detail::canonical<Op>, T> : is_commutative<Op, T> {};

template <class Op, class T>
struct reduction<detail::canonical<Op>, T> {
  using partial = T;
  using accumulator = typename reduction<Op, T>::accumulator;
  static constexpr bool prepares = true;

  HOCKET_DETAIL_CALLS_USERS
  HOCKET_HOST_DEVICE static constexpr partial prepare(const detail::canonical<Op>& op, const T& value) {
    const auto wide = static_cast<accumulator>(value);
    return static_cast<partial>(combine(op, wide, wide));
  }
  HOCKET_DETAIL_CALLS_USERS
  HOCKET_HOST_DEVICE static constexpr accumulator combine(const detail::canonical<Op>& op, const accumulator& a,
                                                          const accumulator& b) {
    return reduction<Op, T>::combine(op.op, a, b);
  }
  HOCKET_DETAIL_CALLS_USERS
  HOCKET_HOST_DEVICE static constexpr T finish(const detail::canonical<Op>&, const partial& value, int) {
    return value;
  }
};

template <class Op, class Wire, class T>
struct reduction<detail::wired<Op, Wire>, T> {
  static_assert(detail::callable_operation<Op, accumulator_t<T>>,
                "wire<W>: the operation must be callable as op(a, b) on the accumulator type of the elements");
  using partial = Wire;
  using accumulator = accumulator_t<T>;
  static constexpr bool prepares = true;

  HOCKET_DETAIL_CALLS_USERS
  HOCKET_HOST_DEVICE static constexpr partial prepare(const detail::wired<Op, Wire>&, const T& value) {
    return static_cast<partial>(static_cast<accumulator>(value));
  }
  HOCKET_DETAIL_CALLS_USERS
  HOCKET_HOST_DEVICE static constexpr accumulator combine(const detail::wired<Op, Wire>& op, const accumulator& a,
                                                          const accumulator& b) {
    return static_cast<accumulator>(detail::apply(op.op, a, b));
  }
  HOCKET_DETAIL_CALLS_USERS
  HOCKET_HOST_DEVICE static constexpr T finish(const detail::wired<Op, Wire>&, const partial& value, int) {
    return static_cast<T>(static_cast<accumulator>(value));
  }
};

HOCKET_END_NAMESPACE
