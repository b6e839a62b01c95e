// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Floating-point numbers of one or two bytes, written once for all formats: `half`, `bfloat16`, `float8_e4m3` and
/// `float8_e5m2` are `small_float` with four formats. They are for storage and messages, not for arithmetic.
///
/// - To float: implicit. It is exact, like float to double, so that `a + b`, `a < b`, `std::abs(a)` and `std::isnan(a)`
///   mean the same as for floats. A sum of two halves is a float: nothing is rounded silently.
/// - From other arithmetic types: explicit, because it rounds: once, to nearest, ties to even, also from double and
///   64-bit integers. Flush-to-zero modes and -ffast-math change nothing; another rounding mode than the default one
///   may show in results below the format's smallest normal value.
/// - Bits are those of CUDA's headers on the host: every NaN becomes the format's all-ones NaN without a sign; the
///   8-bit formats turn values that are too large, infinity included, into their largest finite value.
///
/// Conversions are one or two dozen instructions without branches, so that compilers vectorise loops over them for any
/// target. In kernels, they use the GPU's instructions, if any, with the same bits.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/scalar/device_conversions.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE

namespace detail {

/// Constants derived from a format: `bits_type`, `mantissa_bits`, `exponent_bias`, `largest` (bits of the largest
/// finite value), `has_infinity` (its bits are then largest + 1) and `saturates`. The highest bit is the sign. Signed
/// 32-bit integers throughout, because the vector units of the oldest targets compare only those.
template <class Format>
struct small_float_layout : Format {
  static constexpr int width = 8 * sizeof(typename Format::bits_type);
  static constexpr std::int32_t sign = std::int32_t{1} << (width - 1);
  static constexpr std::int32_t nan = sign - 1;
  static constexpr std::int32_t infinity = Format::largest + 1;
  static constexpr std::int32_t overflow = Format::saturates ? Format::largest : infinity;
  static constexpr std::int32_t last_number = Format::has_infinity ? infinity : Format::largest;
  static constexpr std::int32_t smallest_normal = std::int32_t{1} << Format::mantissa_bits;
  /// Extra bits of float's mantissa, and the difference of the exponent biases, shifted to float's exponent field.
  static constexpr int extra_bits = 23 - Format::mantissa_bits;
  static constexpr std::int32_t rebias = (127 - Format::exponent_bias) * (1 << 23);
  /// The smallest normal value as a float.
  static constexpr std::int32_t first_normal = (1 << 23) + rebias;
  /// Exponent of the smallest positive value.
  static constexpr int unit_exponent = 1 - Format::exponent_bias - Format::mantissa_bits;
};

constexpr std::int32_t float_infinity_bits = 0x7f800000;
constexpr std::int32_t float_nan_bits = 0x7fffffff;

HOCKET_HOST_DEVICE constexpr float power_of_two(int exponent) noexcept {
  return __builtin_bit_cast(float, (127 + exponent) * (1 << 23));
}

/// `value < limit ? yes : no` for value and limit that are not negative. With a plain conditional, compilers move the
/// computation of `yes` or `no` into a branch, and do not vectorise loops with branches.
HOCKET_HOST_DEVICE HOCKET_ALWAYS_INLINE constexpr std::int32_t select_below(std::int32_t value, std::int32_t limit,
                                                                            std::int32_t yes,
                                                                            std::int32_t no) noexcept {
  return no ^ ((yes ^ no) & ((value - limit) >> 31));
}

/// Bits of a magnitude below the smallest normal value: adding a number whose last place is worth one unit of the
/// format makes the processor round there, and leaves the number of units in the lowest bits. The result for other
/// magnitudes is not used; the mask makes infinities and NaNs small, because constant evaluation rejects them.
template <class Layout>
HOCKET_HOST_DEVICE HOCKET_ALWAYS_INLINE constexpr std::int32_t encode_subnormal(std::int32_t magnitude) noexcept {
  constexpr float aligner = power_of_two(Layout::unit_exponent + 23);
  static_assert(Layout::first_normal < 0x40000000);
  const float sum = __builtin_bit_cast(float, magnitude & 0x3fffffff) + aligner;
  return __builtin_bit_cast(std::int32_t, sum) - __builtin_bit_cast(std::int32_t, aligner);
}

template <class Layout>
HOCKET_HOST_DEVICE HOCKET_ALWAYS_INLINE constexpr typename Layout::bits_type encode(float value) noexcept {
#if defined(__CUDA_ARCH__)
  if constexpr (has_encoding_instruction<Layout>) {
    if (!__builtin_is_constant_evaluated()) return encode_by_instruction<Layout>(value);
  }
#endif
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  const auto magnitude = static_cast<std::int32_t>(bits & 0x7fffffffU);
  const auto sign = static_cast<std::int32_t>(bits >> (32 - Layout::width)) & Layout::sign;

  constexpr std::int32_t just_below_half = (1 << (Layout::extra_bits - 1)) - 1;
  const std::int32_t odd = (magnitude >> Layout::extra_bits) & 1;
  // Cannot overflow: only NaNs come close, and only if rebias is 0.
  std::int32_t result = static_cast<std::int32_t>(
      (static_cast<std::uint32_t>(magnitude - Layout::rebias) + static_cast<std::uint32_t>(just_below_half + odd)) >>
      Layout::extra_bits);
  if constexpr (Layout::rebias != 0) {
    result = select_below(magnitude, Layout::first_normal, encode_subnormal<Layout>(magnitude), result);
    result = select_below(Layout::overflow, result, Layout::overflow, result);
  }
  result |= sign;
  result = select_below(float_infinity_bits, magnitude, Layout::nan, result);
  return static_cast<typename Layout::bits_type>(result);
}

template <class Layout>
HOCKET_HOST_DEVICE HOCKET_ALWAYS_INLINE constexpr float decode(typename Layout::bits_type bits) noexcept {
#if defined(__CUDA_ARCH__)
  if constexpr (has_decoding_instruction<Layout>) {
    if (!__builtin_is_constant_evaluated()) return decode_by_instruction<Layout>(bits);
  }
#endif
  if constexpr (Layout::rebias == 0) {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << Layout::extra_bits);
  } else {
    const std::int32_t magnitude = bits & Layout::nan;
    const std::uint32_t sign = (bits & static_cast<std::uint32_t>(Layout::sign)) << (32 - Layout::width);
    const std::int32_t normal = (magnitude << Layout::extra_bits) + Layout::rebias;
    const float subnormal = static_cast<float>(magnitude) * power_of_two(Layout::unit_exponent);
    std::int32_t result =
        select_below(magnitude, Layout::smallest_normal, __builtin_bit_cast(std::int32_t, subnormal), normal);
    if constexpr (Layout::has_infinity) result = select_below(Layout::largest, magnitude, float_infinity_bits, result);
    result = static_cast<std::int32_t>(static_cast<std::uint32_t>(result) | sign);
    result = select_below(Layout::last_number, magnitude, float_nan_bits, result);
    return __builtin_bit_cast(float, result);
  }
}

/// Truncates `value` to a float, and sets its last bit if anything was lost ("round to odd"). Rounding that to a format
/// that is at least two bits shorter gives the same result as rounding `value` itself.
HOCKET_HOST_DEVICE constexpr float round_to_odd(double value) noexcept {
  const auto bits = __builtin_bit_cast(std::uint64_t, value);
  const std::uint64_t magnitude = bits & 0x7fffffffffffffffULL;
  const auto sign = static_cast<std::uint32_t>(bits >> 32) & 0x80000000U;
  const int exponent = static_cast<int>(magnitude >> 52) - (1023 - 127);
  std::uint32_t result = 0;
  if (magnitude >= 0x7ff0000000000000ULL) {
    result = static_cast<std::uint32_t>(magnitude == 0x7ff0000000000000ULL ? float_infinity_bits : float_nan_bits);
  } else if (exponent > 254) {
    result = 0x7f7fffffU;
  } else {
    const bool subnormal = exponent < 1;
    const std::uint64_t above_mantissa = subnormal ? 1 : static_cast<std::uint64_t>(exponent);
    const std::uint64_t significand = (magnitude & 0xfffffffffffffULL) | above_mantissa << 52;
    const int shift = subnormal ? 30 - exponent : 29;
    const std::uint64_t kept = shift < 64 ? significand >> shift : 0;
    const bool lost = shift < 64 ? (kept << shift) != significand : magnitude != 0;
    result = static_cast<std::uint32_t>(kept | (lost ? 1U : 0U));
  }
  return __builtin_bit_cast(float, sign | result);
}

/// The same for integers. Bits that double cannot hold are combined into one bit first.
template <class Integer>
HOCKET_HOST_DEVICE constexpr float round_to_odd_integer(Integer value) noexcept {
  static_assert(sizeof(Integer) <= 8, "convert wider integers to double first");
  auto magnitude = static_cast<std::uint64_t>(value);
  bool negative = false;
  if constexpr (std::is_signed_v<Integer>) negative = value < 0;
  if (negative) magnitude = 0 - magnitude;
  if (magnitude >> 52 != 0) magnitude = (magnitude >> 12 | ((magnitude & 0xfffU) != 0 ? 1U : 0U)) << 12;
  const auto exact = static_cast<double>(magnitude);
  return round_to_odd(negative ? -exact : exact);
}

}  // namespace detail

/// A floating-point number in one or two bytes; use it by its names `half`, `bfloat16`, `float8_e4m3`, `float8_e5m2`.
/// Trivial, like float: a default-initialised one is indeterminate, a value-initialised one is zero.
template <class Format>
class small_float {
  using layout = detail::small_float_layout<Format>;

 public:
  /// The unsigned integer of the same size.
  using bits_type = typename Format::bits_type;

  small_float() = default;

  /// Rounds to the nearest value.
  HOCKET_HOST_DEVICE HOCKET_ALWAYS_INLINE explicit constexpr small_float(float value) noexcept
      : bits_(detail::encode<layout>(value)) {}

  /// Rounds once: the result is the nearest value to `value`, not to the nearest float.
  template <class Arithmetic>
    requires std::is_integral_v<Arithmetic>
  HOCKET_HOST_DEVICE explicit constexpr small_float(Arithmetic value) noexcept
      : small_float(detail::round_to_odd_integer(value)) {}
  /// Rounds once, to the nearest value.
  HOCKET_HOST_DEVICE explicit constexpr small_float(double value) noexcept : small_float(detail::round_to_odd(value)) {}

  /// The size of long double differs between platforms: convert to double first.
  explicit small_float(long double) = delete;

  /// Returns the value with this encoding, without a conversion.
  HOCKET_HOST_DEVICE static constexpr small_float from_bits(bits_type bits) noexcept {
    small_float result{};
    result.bits_ = bits;
    return result;
  }
  HOCKET_HOST_DEVICE constexpr bits_type bits() const noexcept { return bits_; }  ///< the encoding

  /// The same value, exactly.
  HOCKET_HOST_DEVICE HOCKET_ALWAYS_INLINE constexpr operator float() const noexcept {
    return detail::decode<layout>(bits_);
  }

 private:
  bits_type bits_;
};

HOCKET_END_NAMESPACE

/// Members not defined here are those of float. There is no signalling NaN, because conversions raise no exceptions.
template <class Format>
struct std::numeric_limits<hocket::small_float<Format>> : std::numeric_limits<float> {
 private:
  using type = hocket::small_float<Format>;
  using layout = hocket::detail::small_float_layout<Format>;
  HOCKET_HOST_DEVICE static constexpr type make(std::int32_t bits) noexcept {
    return type::from_bits(static_cast<typename type::bits_type>(bits));
  }
  /// Returns the decimal digits of a number of binary digits, rounded towards zero.
  HOCKET_HOST_DEVICE static constexpr int decimal(int binary) noexcept { return binary * 30103 / 100000; }

 public:
  static constexpr bool is_iec559 = Format::is_iec559;
  static constexpr bool has_infinity = Format::has_infinity;
  static constexpr bool has_quiet_NaN = true;
  static constexpr bool has_signaling_NaN = false;

  static constexpr int digits = Format::mantissa_bits + 1;
  static constexpr int digits10 = decimal(Format::mantissa_bits);
  static constexpr int max_digits10 = 2 + decimal(digits);
  static constexpr int min_exponent = 2 - Format::exponent_bias;
  static constexpr int min_exponent10 = decimal(min_exponent - 1);
  static constexpr int max_exponent = (Format::largest >> Format::mantissa_bits) - Format::exponent_bias + 1;
  static constexpr int max_exponent10 = decimal(max_exponent);

  HOCKET_HOST_DEVICE static constexpr type min() noexcept { return make(layout::smallest_normal); }
  HOCKET_HOST_DEVICE static constexpr type lowest() noexcept { return make(Format::largest | layout::sign); }
  HOCKET_HOST_DEVICE static constexpr type max() noexcept { return make(Format::largest); }
  HOCKET_HOST_DEVICE static constexpr type denorm_min() noexcept { return make(1); }
  HOCKET_HOST_DEVICE static constexpr type epsilon() noexcept {
    return type(hocket::detail::power_of_two(-Format::mantissa_bits));
  }
  HOCKET_HOST_DEVICE static constexpr type round_error() noexcept { return type(0.5F); }
  /// Zero for `float8_e4m3`, which has no infinity.
  HOCKET_HOST_DEVICE static constexpr type infinity() noexcept { return make(has_infinity ? layout::infinity : 0); }
  HOCKET_HOST_DEVICE static constexpr type quiet_NaN() noexcept { return make(layout::nan); }
  HOCKET_HOST_DEVICE static constexpr type signaling_NaN() noexcept { return make(0); }
};
