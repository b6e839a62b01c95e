// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// `bfloat16`: the upper half of a float, with the range of float and a precision of 8 bits. The usual format in which
/// gradients are sent. Layout and bits are those of CUDA's `__nv_bfloat16`.
#pragma once

#include <hocket/scalar/small_float.hpp>

#include <cstdint>

HOCKET_BEGIN_NAMESPACE

namespace detail {

struct upper_half_of_float {
  using bits_type = std::uint16_t;
  static constexpr int mantissa_bits = 7;
  static constexpr int exponent_bias = 127;
  static constexpr std::int32_t largest = 0x7f7f;
  static constexpr bool has_infinity = true;
  static constexpr bool saturates = false;
  static constexpr bool is_iec559 = false;
};

}  // namespace detail

/// The brain floating-point format. Decoding appends 16 zero bits, to NaNs too: they keep their sign and payload.
using bfloat16 = small_float<detail::upper_half_of_float>;

HOCKET_END_NAMESPACE
