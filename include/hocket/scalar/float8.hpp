// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// `float8_e4m3` and `float8_e5m2`: the 8-bit formats of the Open Compute Project, for messages where a quarter of
/// float's bytes justifies a precision of only 4 or 3 bits. Layout and bits are those of CUDA's `__nv_fp8_e4m3` and
/// `__nv_fp8_e5m2`, and so is saturation: a value that is too large, infinity included, becomes the largest finite
/// value, so that a scaled sum stays usable.
#pragma once

#include <hocket/scalar/small_float.hpp>

#include <cstdint>

HOCKET_BEGIN_NAMESPACE

namespace detail {

struct ocp_e4m3 {
  using bits_type = std::uint8_t;
  static constexpr int mantissa_bits = 3;
  static constexpr int exponent_bias = 7;
  static constexpr std::int32_t largest = 0x7e;
  static constexpr bool has_infinity = false;
  static constexpr bool saturates = true;
  static constexpr bool is_iec559 = false;
};

struct ocp_e5m2 {
  using bits_type = std::uint8_t;
  static constexpr int mantissa_bits = 2;
  static constexpr int exponent_bias = 15;
  static constexpr std::int32_t largest = 0x7b;
  static constexpr bool has_infinity = true;
  static constexpr bool saturates = true;
  static constexpr bool is_iec559 = false;
};

}  // namespace detail

/// 4 bits of precision, up to 448, no infinity; 0x7f and 0xff are NaN and decode as the float NaN 0x7fffffff.
using float8_e4m3 = small_float<detail::ocp_e4m3>;

/// 3 bits of precision, up to 57344. It has infinities (0x7c, 0xfc), which decode as such, but no conversion makes one.
using float8_e5m2 = small_float<detail::ocp_e5m2>;

HOCKET_END_NAMESPACE
