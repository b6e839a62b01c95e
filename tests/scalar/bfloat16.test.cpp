// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/scalar/bfloat16.hpp>

#include "support/catch.hpp"

#include <bit>
#include <cstdint>
#include <limits>

using hocket::bfloat16;

TEST_CASE("bfloat16: constants", "[scalar]") {
  CHECK(bfloat16(1.0F).bits() == 0x3f80);
  CHECK(bfloat16(-2.0F).bits() == 0xc000);
  CHECK(bfloat16(3.14159265F).bits() == 0x4049);
  CHECK(bfloat16(1.0F / 3).bits() == 0x3eab);
  CHECK(bfloat16(std::numeric_limits<float>::min()).bits() == 0x0080);
  CHECK(bfloat16(std::numeric_limits<float>::infinity()).bits() == 0x7f80);
  CHECK(bfloat16(-0.0F).bits() == 0x8000);
}

TEST_CASE("bfloat16: rounding next to ties and limits", "[scalar]") {
  const auto encoded = [](std::uint32_t bits) { return bfloat16(std::bit_cast<float>(bits)).bits(); };
  CHECK(encoded(0x3f807fff) == 0x3f80);
  CHECK(encoded(0x3f808000) == 0x3f80);
  CHECK(encoded(0x3f808001) == 0x3f81);
  CHECK(encoded(0x3f818000) == 0x3f82);
  CHECK(encoded(0x7f7f7fff) == 0x7f7f);
  CHECK(encoded(0x7f7f8000) == 0x7f80);
  CHECK(encoded(0x00008000) == 0x0000);
  CHECK(encoded(0x00008001) == 0x0001);
}

TEST_CASE("bfloat16: decoding appends zero bits, for NaNs too", "[scalar]") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float decoded = bfloat16::from_bits(static_cast<std::uint16_t>(bits));
    wrong += std::bit_cast<std::uint32_t>(decoded) != bits << 16 ? 1 : 0;
  }
  CHECK(wrong == 0);
}

TEST_CASE("bfloat16: numeric_limits match reference values", "[scalar]") {
  using limits = std::numeric_limits<bfloat16>;
  CHECK(limits::digits == 8);
  CHECK(limits::digits10 == 2);
  CHECK(limits::max_digits10 == 4);
  CHECK(limits::min_exponent == std::numeric_limits<float>::min_exponent);
  CHECK(limits::max_exponent == std::numeric_limits<float>::max_exponent);
  CHECK(limits::max() == 0x1.fep127F);
  CHECK(limits::epsilon() == 0.0078125F);
}
