// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The reduction operations that the standard library has no function object for.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/float_bits.hpp>
#include <hocket/operation/apply.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/scalar/small_float.hpp>
#include <hocket/scalar/traits.hpp>

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

/// True for float, double and the small floating-point types, whose values are exact as floats.
template <class T>
inline constexpr bool has_float_bits = is_float_or_double<T>;
template <class Format>
inline constexpr bool has_float_bits<small_float<Format>> = true;

/// False if the compiler assumes that there are no NaNs.
template <class T>
inline constexpr bool compares_nans = __FINITE_MATH_ONLY__ == 0;

/// True for a NaN of any type; false for types that have none.
HOCKET_DETAIL_CALLS_USERS
template <class T>
HOCKET_HOST_DEVICE constexpr bool is_nan(const T& value) {
  if constexpr (has_float_bits<T>) {
    return has_nan_bits(static_cast<accumulator_t<T>>(value));
  } else if constexpr (is_floating<T>) {
    static_assert(compares_nans<T> || !std::is_floating_point_v<T>,
                  "hocket: with -ffast-math or -ffinite-math-only, a NaN can be found in a float or a double, but not "
                  "in a long double: reduce doubles, or compile without these flags");
    return !(value == value);  // NOLINT: only a NaN differs from itself
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

/// True if `b` is to be taken instead of `a`. A negative zero is smaller than a positive one.
HOCKET_DETAIL_CALLS_USERS
template <bool Smaller, class T>
HOCKET_HOST_DEVICE constexpr bool takes_second(const T& a, const T& b) {
  if constexpr (has_float_bits<T>) {
    using wide = accumulator_t<T>;
    return exceeds(static_cast<wide>(a), static_cast<wide>(b)) == Smaller;
  } else {
    if (Smaller ? b < a : a < b) return true;
    return is_negative_zero(Smaller ? b : a) && !(Smaller ? a < b : b < a);
  }
}

/// The smaller or larger of two values, as `minimum` and `maximum` define it.
HOCKET_DETAIL_CALLS_USERS
template <bool Smaller, class T>
HOCKET_HOST_DEVICE constexpr T smaller_or_larger(const T& a, const T& b) {
  const T found = takes_second<Smaller>(a, b) ? b : a;
  if constexpr (is_floating<T>) {
    return static_cast<int>(is_nan(a)) | static_cast<int>(is_nan(b)) ? canonical_nan<T>() : found;
  } else {
    return found;
  }
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
    return detail::smaller_or_larger<true>(a, b);
  }
};

/// The larger value. A NaN on any rank gives NaN; of two zeros the positive one is larger.
struct maximum {
  HOCKET_DETAIL_CALLS_USERS
  template <detail::ordered T>
  HOCKET_HOST_DEVICE constexpr T operator()(const T& a, const T& b) const {
    return detail::smaller_or_larger<false>(a, b);
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

namespace detail {

/// The type in which a sum is divided by the number of ranks, which an integer of T may not be able to hold.
template <class T>
struct divisor {
  using type = T;
};
template <class T>
  requires std::is_integral_v<T>
struct divisor<T> : std::common_type<T, std::conditional_t<std::is_signed_v<T>, int, unsigned>> {};
template <class T>
using divisor_t = typename divisor<T>::type;

/// a + b; integers wrap around, which is undefined for signed ones if it isn't computed without sign.
HOCKET_DETAIL_CALLS_USERS
template <class T>
HOCKET_HOST_DEVICE constexpr T wrapping_sum(const T& a, const T& b) {
  if constexpr (std::is_integral_v<T>) {
    using wide = std::make_unsigned_t<std::common_type_t<T, int>>;
    return static_cast<T>(static_cast<wide>(a) + static_cast<wide>(b));
  } else {
    return static_cast<T>(static_cast<accumulator_t<T>>(a) + static_cast<accumulator_t<T>>(b));
  }
}

}  // namespace detail

/// The sum divided by the number of ranks. Small floating-point types are added and sent as float, so that their sums
/// do not overflow and keep float's precision; integers keep their type, their sum wraps around, and the quotient is
/// truncated.
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
    return detail::wrapping_sum(a, b);
  }
  HOCKET_DETAIL_CALLS_USERS
  template <class T>
  HOCKET_HOST_DEVICE static constexpr T finish(const T& sum, int ranks) {
    using divisor = detail::divisor_t<accumulator_t<T>>;
    return static_cast<T>(static_cast<divisor>(sum) / static_cast<divisor>(ranks));
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
    return detail::wrapping_sum(a, b);
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
