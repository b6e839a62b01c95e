// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/scalar/float8.hpp>

#include "support/catch.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

using hocket::float8_e4m3;
using hocket::float8_e5m2;

constexpr float infinity_of_float = std::numeric_limits<float>::infinity();

TEST_CASE("float8_e4m3: constants", "[scalar]") {
  CHECK(float8_e4m3(1.0F).bits() == 0x38);
  CHECK(float8_e4m3(-2.0F).bits() == 0xc0);
  CHECK(float8_e4m3(448.0F).bits() == 0x7e);
  CHECK(float8_e4m3(0x1p-6F).bits() == 0x08);
  CHECK(float8_e4m3(0x1p-9F).bits() == 0x01);
  CHECK(float8_e4m3(0x1p-10F).bits() == 0x00);
  CHECK(float8_e4m3(-0.0F).bits() == 0x80);
}

TEST_CASE("float8_e4m3: overflow saturates, and NaN stays NaN", "[scalar]") {
  CHECK(float8_e4m3(465.0F).bits() == 0x7e);
  CHECK(float8_e4m3(infinity_of_float).bits() == 0x7e);
  CHECK(float8_e4m3(-infinity_of_float).bits() == 0xfe);
  CHECK(std::isnan(float8_e4m3(std::numeric_limits<float>::quiet_NaN())));
  CHECK(std::bit_cast<std::uint32_t>(static_cast<float>(float8_e4m3::from_bits(0xff))) == 0x7fffffffU);
}

TEST_CASE("float8_e5m2: constants", "[scalar]") {
  CHECK(float8_e5m2(1.0F).bits() == 0x3c);
  CHECK(float8_e5m2(-2.0F).bits() == 0xc0);
  CHECK(float8_e5m2(57344.0F).bits() == 0x7b);
  CHECK(float8_e5m2(0x1p-14F).bits() == 0x04);
  CHECK(float8_e5m2(0x1p-16F).bits() == 0x01);
  CHECK(float8_e5m2(0x1p-17F).bits() == 0x00);
  CHECK(float8_e5m2(-0.0F).bits() == 0x80);
}

TEST_CASE("float8_e5m2: overflow saturates, and infinity exists only as bits", "[scalar]") {
  CHECK(float8_e5m2(61440.0F).bits() == 0x7b);
  CHECK(float8_e5m2(infinity_of_float).bits() == 0x7b);
  CHECK(float8_e5m2(-infinity_of_float).bits() == 0xfb);
  CHECK(float8_e5m2::from_bits(0x7c) == infinity_of_float);
  CHECK(float8_e5m2::from_bits(0xfc) == -infinity_of_float);
  CHECK(std::isnan(float8_e5m2(std::numeric_limits<float>::quiet_NaN())));
  CHECK(std::bit_cast<std::uint32_t>(static_cast<float>(float8_e5m2::from_bits(0xfd))) == 0x7fffffffU);
}

TEST_CASE("float8: numeric_limits match reference values", "[scalar]") {
  using e4m3 = std::numeric_limits<float8_e4m3>;
  CHECK(e4m3::digits == 4);
  CHECK(e4m3::min_exponent == -5);
  CHECK(e4m3::max_exponent == 9);
  CHECK(e4m3::max() == 448.0F);
  CHECK(e4m3::epsilon() == 0.125F);
  using e5m2 = std::numeric_limits<float8_e5m2>;
  CHECK(e5m2::digits == 3);
  CHECK(e5m2::min_exponent == -13);
  CHECK(e5m2::max_exponent == 16);
  CHECK(e5m2::max() == 57344.0F);
  CHECK(e5m2::epsilon() == 0.25F);
}
