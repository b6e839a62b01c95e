// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Conversions of small floats by dedicated GPU instructions. With integer arithmetic, the conversion and not memory
/// would limit kernels that read halves. The bits are the same. Empty when compiling for the host.
#pragma once

#include <hocket/core/config.hpp>

#if defined(__CUDA_ARCH__)

#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Identifies the format of a layout of scalar/small_float.hpp.
template <class Layout>
inline constexpr bool is_half = Layout::width == 16 && Layout::mantissa_bits == 10;
template <class Layout>
inline constexpr bool is_bfloat16 = Layout::width == 16 && Layout::mantissa_bits == 7;
template <class Layout>
inline constexpr bool is_e4m3 = Layout::width == 8 && Layout::mantissa_bits == 3;
template <class Layout>
inline constexpr bool is_e5m2 = Layout::width == 8 && Layout::mantissa_bits == 2;

template <class Layout>
inline constexpr bool has_encoding_instruction =
    is_half<Layout> || (__CUDA_ARCH__ >= 800 && is_bfloat16<Layout>) || (__CUDA_ARCH__ >= 890 && Layout::width == 8);
template <class Layout>
inline constexpr bool has_decoding_instruction =
    is_half<Layout> || is_e5m2<Layout> || (__CUDA_ARCH__ >= 890 && is_e4m3<Layout>);

/// NaNs become the format's all-ones NaN. The bits are returned in a 32-bit register: if a 16-bit register is stored as
/// bytes, the assembler of CUDA 13.0 treats it as a number and converts it to an integer.
template <class Layout>
__device__ typename Layout::bits_type encode_by_instruction(float value) noexcept {
  std::uint32_t bits = 0;
  if constexpr (is_half<Layout>) {
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(0.0F), "f"(value));
#else
    asm("{ .reg .b16 low, high; cvt.rn.f16.f32 low, %1; mov.b16 high, 0; mov.b32 %0, {low, high}; }"
        : "=r"(bits)
        : "f"(value));
#endif
  } else if constexpr (is_bfloat16<Layout>) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(0.0F), "f"(value));
  } else if constexpr (is_e4m3<Layout>) {
    asm("{ .reg .b16 low, high; cvt.rn.satfinite.e4m3x2.f32 low, %1, %2; mov.b16 high, 0; mov.b32 %0, {low, high}; }"
        : "=r"(bits)
        : "f"(0.0F), "f"(value));
  } else {
    asm("{ .reg .b16 low, high; cvt.rn.satfinite.e5m2x2.f32 low, %1, %2; mov.b16 high, 0; mov.b32 %0, {low, high}; }"
        : "=r"(bits)
        : "f"(0.0F), "f"(value));
  }
  return static_cast<typename Layout::bits_type>(bits);
}

/// NaNs lose their sign, because the instructions produce different NaNs.
template <class Layout>
__device__ float decode_by_instruction(typename Layout::bits_type bits) noexcept {
  std::uint16_t as_half = bits;
  if constexpr (is_e5m2<Layout>) {
    as_half = static_cast<std::uint16_t>(bits << 8);
  } else if constexpr (is_e4m3<Layout>) {
    std::uint32_t two = 0;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(two) : "h"(static_cast<std::uint16_t>(bits)));
    as_half = static_cast<std::uint16_t>(two);
  }
  float value = 0;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(as_half));
  const bool is_nan = (bits & Layout::nan) > Layout::last_number;
  return is_nan ? __builtin_bit_cast(float, 0x7fffffffU) : value;
}

}  // namespace detail
HOCKET_END_NAMESPACE

#endif
