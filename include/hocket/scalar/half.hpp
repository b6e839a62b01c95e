// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// `half`: half the bytes of float, with a precision of 11 bits and a range that ends at 65504. Gradients that may
/// exceed that range need a scale, or `bfloat16`. Layout and bits are those of CUDA's `__half` and of `_Float16`.
#pragma once

#include <hocket/scalar/small_float.hpp>

#include <cstdint>

HOCKET_BEGIN_NAMESPACE

namespace detail {

struct binary16 {
  using bits_type = std::uint16_t;
  static constexpr int mantissa_bits = 10;
  static constexpr int exponent_bias = 15;
  static constexpr std::int32_t largest = 0x7bff;
  static constexpr bool has_infinity = true;
  static constexpr bool saturates = false;
  static constexpr bool is_iec559 = true;
};

}  // namespace detail

/// IEEE 754 binary16. Magnitudes from 65520 up become infinity. A NaN decodes as the float NaN 0x7fffffff.
using half = small_float<detail::binary16>;

HOCKET_END_NAMESPACE
