// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/scalar/half.hpp>

#include "support/catch.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

using hocket::half;

TEST_CASE("half: constants of IEEE binary16", "[scalar]") {
  CHECK(half(1.0F).bits() == 0x3c00);
  CHECK(half(-2.0F).bits() == 0xc000);
  CHECK(half(1.0F / 3).bits() == 0x3555);
  CHECK(half(3.14159265F).bits() == 0x4248);
  CHECK(half(65504.0F).bits() == 0x7bff);
  CHECK(half(0x1p-14F).bits() == 0x0400);
  CHECK(half(0x1p-24F).bits() == 0x0001);
  CHECK(half(-0.0F).bits() == 0x8000);
  CHECK(half::from_bits(0x03ff) == 1023 * 0x1p-24F);
  CHECK(half::from_bits(0x7c00) == std::numeric_limits<float>::infinity());
}

TEST_CASE("half: rounding next to ties and limits", "[scalar]") {
  CHECK(half(65519.996F).bits() == 0x7bff);
  CHECK(half(65520.0F).bits() == 0x7c00);
  CHECK(half(-65520.0F).bits() == 0xfc00);
  CHECK(half(0x1p-25F).bits() == 0x0000);
  CHECK(half(0x1.000002p-25F).bits() == 0x0001);
  CHECK(half(0x1.8p-24F).bits() == 0x0002);
  CHECK(half(2049.0F) == 2048.0F);
  CHECK(half(2051.0F) == 2052.0F);
  CHECK(half(0x1.ffep-15F).bits() == 0x0400);
}

TEST_CASE("half: NaNs decode as one NaN", "[scalar]") {
  for (const std::uint16_t bits : {std::uint16_t{0x7c01}, std::uint16_t{0x7e00}, std::uint16_t{0xffff}}) {
    CHECK(std::bit_cast<std::uint32_t>(static_cast<float>(half::from_bits(bits))) == 0x7fffffffU);
  }
}

TEST_CASE("half: numeric_limits match reference values", "[scalar]") {
  using limits = std::numeric_limits<half>;
  CHECK(limits::is_iec559);
  CHECK(limits::digits == 11);
  CHECK(limits::digits10 == 3);
  CHECK(limits::max_digits10 == 5);
  CHECK(limits::min_exponent == -13);
  CHECK(limits::max_exponent == 16);
  CHECK(limits::max() == 65504.0F);
  CHECK(limits::epsilon() == 0.0009765625F);
}
