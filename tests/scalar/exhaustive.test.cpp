// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Compares all 2^32 floats and all bit patterns of all four types with checksums of CUDA's conversions. This takes
/// about 10 s of one core per type in an optimised build, so these tests run only on request: `[exhaustive]`.
// unsanitized: all floats take minutes under a sanitizer
#include <hocket/scalar/scalar.hpp>

#include "scalar/recorded_checksums.hpp"
#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>

namespace {

template <class T>
void check_against(const scalar_checksums::record& expected) {
  using bits_type = typename T::bits_type;
  const auto actual = scalar_checksums::make_record<bits_type>([](float value) { return T(value).bits(); },
                                                               [](bits_type bits) { return T::from_bits(bits); });
  for (std::size_t block = 0; block < scalar_checksums::block_count; ++block) {
    INFO("floats whose highest hexadecimal digit is " << block);
    CHECK(actual.encoded[block] == expected.encoded[block]);
  }
  CHECK(actual.decoded == expected.decoded);
}

}  // namespace

TEST_CASE("half: every float and every bit pattern is converted as in CUDA", "[.exhaustive][scalar]") {
  check_against<hocket::half>(scalar_checksums::recorded_half);
}

TEST_CASE("bfloat16: every float and every bit pattern is converted as in CUDA", "[.exhaustive][scalar]") {
  check_against<hocket::bfloat16>(scalar_checksums::recorded_bfloat16);
}

TEST_CASE("float8_e4m3: every float and every bit pattern is converted as in CUDA", "[.exhaustive][scalar]") {
  check_against<hocket::float8_e4m3>(scalar_checksums::recorded_e4m3);
}

TEST_CASE("float8_e5m2: every float and every bit pattern is converted as in CUDA", "[.exhaustive][scalar]") {
  check_against<hocket::float8_e5m2>(scalar_checksums::recorded_e5m2);
}
