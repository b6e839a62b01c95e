// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Finds from their bits whether a float or double is finite, and which of two is smaller.
///
/// Comparisons of values do not always tell. With -ffast-math, compilers assume that there are no NaNs, infinities and
/// negative zeros. In a mode that some libraries set, and -ffast-math at linking, processors take subnormal numbers for
/// zero, so that different numbers compare equal. Ranks need the same results, whatever the flags and modes of each.
#pragma once

#include <hocket/core/config.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

template <class T>
inline constexpr bool is_float_or_double = std::is_same_v<T, float> || std::is_same_v<T, double>;

/// The integer with as many bits.
template <class T>
using float_word = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

/// The bits of infinity, and of all numbers but their sign.
template <class T>
inline constexpr float_word<T> infinity_word =
    static_cast<float_word<T>>(sizeof(T) == 4 ? 0x7f800000LL : 0x7ff0000000000000LL);
template <class T>
inline constexpr float_word<T> magnitude_mask = std::numeric_limits<float_word<T>>::max();

/// The bits of `value` without its sign.
template <class T>
HOCKET_HOST_DEVICE constexpr float_word<T> magnitude_word(T value) noexcept {
  return __builtin_bit_cast(float_word<T>, value) & magnitude_mask<T>;
}

/// True if `a` is larger than `b`, neither of which is a NaN. A positive zero is larger than a negative one. The bits of
/// positive numbers are ordered as the numbers are, those of negative numbers in reverse. Equal numbers may give either.
template <class T>
HOCKET_HOST_DEVICE constexpr bool exceeds(T a, T b) noexcept {
  const auto x = __builtin_bit_cast(float_word<T>, a), y = __builtin_bit_cast(float_word<T>, b);
  return ((x > y ? float_word<T>{-1} : float_word<T>{0}) ^ (x & y)) < 0;
}

/// True unless `value` is infinite or a NaN.
template <class T>
HOCKET_HOST_DEVICE constexpr bool is_finite(T value) noexcept {
  return magnitude_word(value) < infinity_word<T>;
}

/// True if `value` is a NaN.
template <class T>
HOCKET_HOST_DEVICE constexpr bool has_nan_bits(T value) noexcept {
  return magnitude_word(value) > infinity_word<T>;
}

}  // namespace detail
HOCKET_END_NAMESPACE
