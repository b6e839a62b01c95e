// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The reduction operations that the standard library has no function object for.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/operation/apply.hpp>
#include <hocket/operation/traits.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE

namespace detail {

/// The only NaN that is returned, because its payload must not depend on the order of the operands.
HOCKET_DETAIL_CALLS_USERS
template <class T>
HOCKET_HOST_DEVICE constexpr T canonical_nan() {
  if constexpr (std::is_arithmetic_v<T>) {
    return quiet_nan_of<T>;
  } else {
    return std::numeric_limits<T>::quiet_NaN();
  }
}

HOCKET_DETAIL_CALLS_USERS
template <class T>
HOCKET_HOST_DEVICE constexpr bool is_nan(const T& value) {
  if constexpr (is_floating<T>) {
    return !(value == value);  // NOLINT: the point
  } else {
    return false;
  }
}

/// True if `value` is a negative zero. Checks the sign bit, because comparisons ignore it.
HOCKET_DETAIL_CALLS_USERS
template <class T>
HOCKET_HOST_DEVICE constexpr bool is_negative_zero(const T& value) {
  if constexpr (is_floating<T>) {
    const auto wide = static_cast<accumulator_t<T>>(value);
    return wide == 0 && __builtin_signbit(wide) != 0;
  } else {
    return false;
  }
}

template <class T>
inline constexpr bool is_float_or_double = std::is_same_v<T, float> || std::is_same_v<T, double>;

/// The smaller or larger of two numbers, as `minimum` and `maximum` define it, without a branch, so that loops are
/// vectorised. Chooses in both orders: if the choices differ, they are zeros, or one is a NaN. Their combined bits have
/// the required sign, and are a NaN if there was one: all bits of the exponent and a bit of the mantissa are set.
template <bool Smaller, class T>
HOCKET_HOST_DEVICE constexpr T smaller_or_larger(T a, T b) {
  using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr bits sign = bits{1} << (8 * sizeof(T) - 1);
  const auto one = __builtin_bit_cast(bits, (Smaller ? b < a : a < b) ? b : a);
  const auto other = __builtin_bit_cast(bits, (Smaller ? a < b : b < a) ? a : b);
  const bits both = Smaller ? one | other : (one | other) & ((one & other) | ~sign);
  const T found = __builtin_bit_cast(T, both);
  return is_nan(found) ? canonical_nan<T>() : found;
}

template <class T>
concept ordered = requires(const T& a, const T& b) { static_cast<bool>(a < b); };

}  // namespace detail

/// The smaller value. A NaN on any rank gives NaN; of two zeros the negative one is smaller, so that the result does not
/// depend on the order.
struct minimum {
  HOCKET_DETAIL_CALLS_USERS
  template <detail::ordered T>
  HOCKET_HOST_DEVICE constexpr T operator()(const T& a, const T& b) const {
    if constexpr (detail::is_float_or_double<T>) {
      return detail::smaller_or_larger<true>(a, b);
    } else {
      if (detail::is_nan(a) || detail::is_nan(b)) return detail::canonical_nan<T>();
      if (b < a) return b;
      return detail::is_negative_zero(b) && !(a < b) ? b : a;
    }
  }
};

/// The larger value. A NaN on any rank gives NaN; of two zeros the positive one is larger.
struct maximum {
  HOCKET_DETAIL_CALLS_USERS
  template <detail::ordered T>
  HOCKET_HOST_DEVICE constexpr T operator()(const T& a, const T& b) const {
    if constexpr (detail::is_float_or_double<T>) {
      return detail::smaller_or_larger<false>(a, b);
    } else {
      if (detail::is_nan(a) || detail::is_nan(b)) return detail::canonical_nan<T>();
      if (a < b) return b;
      return detail::is_negative_zero(a) && !(b < a) ? b : a;
    }
  }
};

/// True for numbers only: values of other types may differ although neither is less than the other.
template <class T>
struct is_commutative<minimum, T> : std::bool_constant<detail::is_number<T>> {};
template <class T>
struct is_commutative<maximum, T> : std::bool_constant<detail::is_number<T>> {};
template <class T>
struct is_exact<minimum, T> : std::bool_constant<detail::is_number<T>> {};
template <class T>
struct is_exact<maximum, T> : std::bool_constant<detail::is_number<T>> {};

namespace detail {

/// g++ tracks NaNs between combinations, so that code for eight operands takes five times as long as seven for two.
template <class Op, class T>
  requires one_of<Op, minimum, maximum> && is_float_or_double<T>
inline constexpr bool best_in_pairs<Op, T> = true;

/// The only NaN in the result is the canonical one.
template <class T>
inline constexpr bool gives_only_some<minimum, T> = is_floating<T>;
template <class T>
inline constexpr bool gives_only_some<maximum, T> = is_floating<T>;

}  // namespace detail

/// The sum divided by the number of ranks. Small floating-point types are added and sent as float, so that their sums
/// do not overflow and keep float's precision; integers keep their type, and the quotient is truncated.
struct average {
  static constexpr bool commutative = true;

  HOCKET_DETAIL_CALLS_USERS
  template <class T>
  HOCKET_HOST_DEVICE static constexpr accumulator_t<T> prepare(const T& value) {
    return static_cast<accumulator_t<T>>(value);
  }
  HOCKET_DETAIL_CALLS_USERS
  template <class T>
  HOCKET_HOST_DEVICE static constexpr T combine(const T& a, const T& b) {
    return static_cast<T>(static_cast<accumulator_t<T>>(a) + static_cast<accumulator_t<T>>(b));
  }
  HOCKET_DETAIL_CALLS_USERS
  template <class T>
  HOCKET_HOST_DEVICE static constexpr T finish(const T& sum, int ranks) {
    using accumulator = accumulator_t<T>;
    return static_cast<T>(static_cast<accumulator>(sum) / static_cast<accumulator>(ranks));
  }
};

/// The sum of each rank's values times that rank's own `factor`; `factor` may differ between ranks. Integers can't have
/// a fractional factor.
template <class Factor>
struct scaled_sum {
  static constexpr bool commutative = true;

  Factor factor;  ///< of this rank

  HOCKET_DETAIL_CALLS_USERS
  template <class T>
  HOCKET_HOST_DEVICE constexpr T prepare(const T& value) const {
    using accumulator = accumulator_t<T>;
    return static_cast<T>(detail::rounded_product(static_cast<accumulator>(factor), static_cast<accumulator>(value)));
  }
  HOCKET_DETAIL_CALLS_USERS
  template <class T>
  HOCKET_HOST_DEVICE static constexpr T combine(const T& a, const T& b) {
    return static_cast<T>(static_cast<accumulator_t<T>>(a) + static_cast<accumulator_t<T>>(b));
  }
  HOCKET_DETAIL_CALLS_USERS
  template <class T>
  HOCKET_HOST_DEVICE static constexpr T finish(const T& sum, int) {
    return sum;
  }
};

namespace detail {

/// The factor would be truncated to an integer.
template <class Factor, class T>
inline constexpr bool rounds_first<scaled_sum<Factor>, T> = std::is_integral_v<T> && is_floating<Factor>;

}  // namespace detail

HOCKET_END_NAMESPACE
