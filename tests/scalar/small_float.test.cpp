// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Laws that hold for every small format, over all of its bit patterns and at every boundary between two of them.
#include <hocket/scalar/scalar.hpp>

#include "support/catch.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace {

using hocket::bfloat16;
using hocket::float8_e4m3;
using hocket::float8_e5m2;
using hocket::half;

constexpr float float_infinity = std::numeric_limits<float>::infinity();

template <class T>
constexpr int pattern_count = 1 << (8 * sizeof(T));
template <class T>
constexpr int sign_bit = pattern_count<T> / 2;

template <class T>
T from(int bits) {
  return T::from_bits(static_cast<typename T::bits_type>(bits));
}

/// Bits of the largest finite value.
template <class T>
int largest() {
  return std::numeric_limits<T>::max().bits();
}

/// Bits of a magnitude that is too large for the format.
template <class T>
int overflow() {
  return sizeof(T) == 2 ? largest<T>() + 1 : largest<T>();
}

/// The next value above the largest finite value, if the format had larger exponents.
template <class T>
double beyond_largest() {
  const double top = from<T>(largest<T>());
  return top + (top - static_cast<double>(from<T>(largest<T>() - 1)));
}

/// Calls check(lower, upper, midpoint) for all neighbouring values from zero. For the largest value, `upper` is the
/// overflow. Midpoints are exact, in float too.
template <class T, class Check>
void for_each_midpoint(Check check) {
  for (int lower = 0; lower <= largest<T>(); ++lower) {
    const bool last = lower == largest<T>();
    const double next = last ? beyond_largest<T>() : static_cast<double>(from<T>(lower + 1));
    check(lower, last ? overflow<T>() : lower + 1, (static_cast<double>(from<T>(lower)) + next) / 2);
  }
}

int even_of(int a, int b) { return a % 2 == 0 ? a : b; }

}  // namespace

#define SMALL_FLOATS half, bfloat16, float8_e4m3, float8_e5m2

TEMPLATE_TEST_CASE("small_float: decoding and encoding gives the same bits back", "[scalar]", SMALL_FLOATS) {
  int wrong = 0;
  int nans = 0;
  for (int bits = 0; bits < pattern_count<TestType>; ++bits) {
    const auto value = from<TestType>(bits);
    const float decoded = value;
    int expected = bits;
    if (std::isnan(decoded)) {
      ++nans;
      expected = sign_bit<TestType> - 1;
    } else if (std::isinf(decoded)) {
      expected = (bits & sign_bit<TestType>) | overflow<TestType>();
    }
    wrong += value.bits() != bits || TestType(decoded).bits() != expected ? 1 : 0;
  }
  CHECK(wrong == 0);
  const int not_nan = largest<TestType>() + (std::numeric_limits<TestType>::has_infinity ? 2 : 1);
  CHECK(nans == 2 * (sign_bit<TestType> - not_nan));
}

TEMPLATE_TEST_CASE("small_float: values grow with their bits and negation flips the sign bit", "[scalar]",
                   SMALL_FLOATS) {
  int wrong = 0;
  const int last = largest<TestType>() + (std::numeric_limits<TestType>::has_infinity ? 1 : 0);
  for (int bits = 0; bits <= last; ++bits) {
    const auto value = from<TestType>(bits);
    const auto negative = from<TestType>(bits | sign_bit<TestType>);
    if (bits < last && !(value < from<TestType>(bits + 1))) ++wrong;
    if (std::bit_cast<std::uint32_t>(-value) != std::bit_cast<std::uint32_t>(static_cast<float>(negative))) ++wrong;
  }
  CHECK(wrong == 0);
  CHECK(static_cast<float>(from<TestType>(0)) == 0.0F);
  CHECK(std::isinf(static_cast<float>(from<TestType>(last))) == std::numeric_limits<TestType>::has_infinity);
}

TEMPLATE_TEST_CASE("small_float: each float is rounded to the nearest value, and ties to even", "[scalar]",
                   SMALL_FLOATS) {
  int wrong = 0;
  for_each_midpoint<TestType>([&](int lower, int upper, double midpoint) {
    const auto tie = static_cast<float>(midpoint);
    if (static_cast<double>(tie) != midpoint) ++wrong;
    const auto encodes = [&](float value, int expected) {
      return TestType(value).bits() == expected && TestType(-value).bits() == (expected | sign_bit<TestType>);
    };
    if (!encodes(std::nextafter(tie, 0.0F), lower)) ++wrong;
    if (!encodes(tie, even_of(lower, upper))) ++wrong;
    if (!encodes(std::nextafter(tie, float_infinity), upper)) ++wrong;
  });
  CHECK(wrong == 0);
  CHECK(TestType(std::numeric_limits<float>::max()).bits() == overflow<TestType>());
  CHECK(TestType(float_infinity).bits() == overflow<TestType>());
  CHECK(TestType(-float_infinity).bits() == (overflow<TestType>() | sign_bit<TestType>));
}

TEMPLATE_TEST_CASE("small_float: encoding never reverses the order of two floats", "[scalar]", SMALL_FLOATS) {
  int wrong = 0;
  int before = 0;
  for (std::uint32_t bits = 0; bits <= 0x7f800000U; bits += 509) {
    const int now = TestType(std::bit_cast<float>(bits)).bits();
    wrong += now < before ? 1 : 0;
    before = now;
  }
  CHECK(wrong == 0);
  CHECK(before == overflow<TestType>());
}

TEMPLATE_TEST_CASE("small_float: every NaN becomes the NaN without a sign", "[scalar]", SMALL_FLOATS) {
  for (const std::uint32_t bits :
       {0x7f800001U, 0x7fbfffffU, 0x7fc00000U, 0x7fffffffU, 0xff800001U, 0xffc00000U, 0xffffffffU}) {
    CHECK(TestType(std::bit_cast<float>(bits)).bits() == sign_bit<TestType> - 1);
  }
  CHECK(TestType(std::numeric_limits<double>::quiet_NaN()).bits() == sign_bit<TestType> - 1);
}

TEMPLATE_TEST_CASE("small_float: doubles are rounded once", "[scalar]", SMALL_FLOATS) {
  int wrong = 0;
  int float_would_differ = 0;
  for_each_midpoint<TestType>([&](int lower, int upper, double midpoint) {
    const double above = std::nextafter(midpoint, std::numeric_limits<double>::infinity());
    const double below = std::nextafter(midpoint, 0.0);
    const auto encodes = [&](double value, int expected) {
      return TestType(value).bits() == expected && TestType(-value).bits() == (expected | sign_bit<TestType>);
    };
    if (!encodes(below, lower)) ++wrong;
    if (!encodes(midpoint, even_of(lower, upper))) ++wrong;
    if (!encodes(above, upper)) ++wrong;
    if (TestType(static_cast<float>(above)).bits() != upper) ++float_would_differ;
    if (TestType(static_cast<float>(below)).bits() != lower) ++float_would_differ;
  });
  CHECK(wrong == 0);
  CHECK(float_would_differ > 0);
  for (const double tiny : {0.0, 0x1p-149, 0x1p-150, 1e-310, 5e-324}) {
    CHECK(TestType(tiny).bits() == 0);
    CHECK(TestType(-tiny).bits() == sign_bit<TestType>);
  }
  for (const double huge : {0x1p128, 1e300, std::numeric_limits<double>::infinity()}) {
    CHECK(TestType(huge).bits() == overflow<TestType>());
    CHECK(TestType(-huge).bits() == (overflow<TestType>() | sign_bit<TestType>));
  }
}

TEMPLATE_TEST_CASE("small_float: integers are rounded once", "[scalar]", SMALL_FLOATS) {
  int wrong = 0;
  for (int value = -70000; value <= 70000; ++value) {
    wrong += TestType(value).bits() != TestType(static_cast<float>(value)).bits() ? 1 : 0;
  }
  CHECK(wrong == 0);
  CHECK(TestType(true).bits() == TestType(1.0F).bits());
  CHECK(TestType(std::numeric_limits<std::int64_t>::min()).bits() == TestType(-0x1p63F).bits());
  CHECK(TestType(std::numeric_limits<std::int8_t>::min()).bits() == TestType(-128.0F).bits());
  CHECK(TestType(std::numeric_limits<std::uint64_t>::max()).bits() == TestType(0x1p64).bits());
}

TEST_CASE("small_float: integers next to a tie that float and double cannot hold are rounded once", "[scalar]") {
  for (int shift = 1; shift < 56; ++shift) {
    const std::uint64_t tie = std::uint64_t{0x101} << (shift - 1);
    INFO("257 * 2^" << shift - 1);
    CHECK(static_cast<float>(bfloat16(tie)) == std::ldexp(128.0F, shift));
    if (shift == 1) continue;
    CHECK(static_cast<float>(bfloat16(tie + 1)) == std::ldexp(129.0F, shift));
    CHECK(static_cast<float>(bfloat16(tie - 1)) == std::ldexp(128.0F, shift));
    CHECK(static_cast<float>(bfloat16(-static_cast<std::int64_t>(tie) - 1)) == std::ldexp(-129.0F, shift));
  }
}

TEMPLATE_TEST_CASE("small_float: comparisons are those of floats", "[scalar]", SMALL_FLOATS) {
  const TestType nan = std::numeric_limits<TestType>::quiet_NaN();
  CHECK_FALSE(nan == nan);
  CHECK(nan != nan);
  CHECK_FALSE(nan < nan);
  CHECK(TestType(0.0F) == TestType(-0.0F));
  CHECK(TestType(-1) < TestType(0));
  CHECK(TestType(2) > 1);
  CHECK(TestType(2) >= 2.0);
  CHECK(TestType(0.5F) == 0.5F);
}

TEMPLATE_TEST_CASE("small_float: numeric_limits agree with the bits", "[scalar]", SMALL_FLOATS) {
  using limits = std::numeric_limits<TestType>;
  const auto next = [](TestType value) { return from<TestType>(value.bits() + 1); };
  CHECK(limits::lowest() == -limits::max());
  CHECK(limits::denorm_min().bits() == 1);
  CHECK(next(TestType(1)) - 1.0F == limits::epsilon());
  CHECK(limits::epsilon() == std::ldexp(1.0F, 1 - limits::digits));
  CHECK(limits::min() == std::ldexp(1.0F, limits::min_exponent - 1));
  CHECK(next(limits::min()) - limits::min() == limits::denorm_min());
  CHECK(limits::min() == std::ldexp(static_cast<float>(limits::denorm_min()), limits::digits - 1));
  CHECK(limits::max() < std::ldexp(1.0, limits::max_exponent));
  CHECK(limits::max() >= std::ldexp(1.0, limits::max_exponent - 1));
  CHECK(limits::round_error() == 0.5F);
  CHECK(std::isnan(limits::quiet_NaN()));
  CHECK(std::isinf(limits::infinity()) == limits::has_infinity);
  CHECK_FALSE(std::isfinite(next(limits::max())));
  CHECK(limits::round_style == std::round_to_nearest);
  CHECK_FALSE(limits::is_exact);
  CHECK_FALSE(limits::is_integer);
}

TEMPLATE_TEST_CASE("small_float: decimal limits agree with their definitions", "[scalar]", SMALL_FLOATS) {
  using limits = std::numeric_limits<TestType>;
  CHECK(limits::digits10 == std::floor((limits::digits - 1) * std::log10(2.0)));
  CHECK(limits::max_digits10 == std::ceil(limits::digits * std::log10(2.0) + 1));
  CHECK(limits::max_exponent10 == std::floor(std::log10(static_cast<double>(limits::max()))));
  CHECK(limits::min_exponent10 == std::ceil(std::log10(static_cast<double>(limits::min()))));
}

#if defined(__SSE2__)
TEMPLATE_TEST_CASE("small_float: flush-to-zero and denormals-are-zero change no bit", "[scalar]", SMALL_FLOATS) {
  std::vector<float> floats;
  for (std::uint32_t bits = 0; bits <= 0x40000000U; bits += 65521) floats.push_back(std::bit_cast<float>(bits));
  std::vector<double> doubles;
  for_each_midpoint<TestType>([&](int, int, double midpoint) {
    floats.push_back(static_cast<float>(midpoint));
    doubles.push_back(midpoint);
  });

  const auto all_bits = [&] {
    std::vector<std::uint32_t> bits;
    for (const float value : floats) bits.push_back(TestType(value).bits());
    for (const double value : doubles) bits.push_back(TestType(value).bits());
    for (int pattern = 0; pattern < pattern_count<TestType>; ++pattern) {
      bits.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(from<TestType>(pattern))));
    }
    return bits;
  };
  const auto expected = all_bits();
  const unsigned mode = _mm_getcsr();
  constexpr unsigned flush_to_zero = 0x8000;
  constexpr unsigned denormals_are_zero = 0x0040;
  _mm_setcsr(mode | flush_to_zero | denormals_are_zero);
  const auto flushed = all_bits();
  _mm_setcsr(mode);
  const bool same = flushed == expected;
  CHECK(same);
}
#endif
