// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Compares conversions with CUDA's headers value by value. Empty unless these headers are on the include path.
// alone: CUDA has a `half` of its own
// unsanitized: all floats take minutes under a sanitizer
#if __has_include(<cuda_fp16.h>) && __has_include(<cuda_bf16.h>) && __has_include(<cuda_fp8.h>)

#include <hocket/scalar/scalar.hpp>

#include "scalar/checksums.hpp"
#include "scalar/cuda_conversions.hpp"
#include "support/catch.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>

namespace {

template <class T, class Decode>
int decodings_that_differ(Decode decode) {
  using bits_type = typename T::bits_type;
  int wrong = 0;
  for (std::uint32_t pattern = 0; pattern < 1U << (8 * sizeof(T)); ++pattern) {
    const auto bits = static_cast<bits_type>(pattern);
    const float ours = T::from_bits(bits);
    wrong += std::bit_cast<std::uint32_t>(ours) != std::bit_cast<std::uint32_t>(decode(bits)) ? 1 : 0;
  }
  return wrong;
}

template <class T, class Encode>
void check_every_float(Encode encode) {
  using bits_type = typename T::bits_type;
  struct difference {
    std::uint64_t count = 0;
    std::uint32_t first = 0;
  };
  std::array<difference, scalar_checksums::block_count> differences;
  scalar_checksums::for_each_block([&](std::size_t block) {
    difference found;
    scalar_checksums::for_each_chunk<bits_type>(block, encode, [&](std::uint32_t first, const bits_type* expected) {
      for (std::uint32_t i = 0; i < scalar_checksums::chunk_size; ++i) {
        if (T(std::bit_cast<float>(first + i)).bits() == expected[i]) continue;
        if (found.count++ == 0) found.first = first + i;
      }
    });
    differences[block] = found;
  });
  for (const difference& found : differences) {
    INFO("first float that differs: bits " << found.first);
    CHECK(found.count == 0);
  }
}

/// Doubles of all exponents; three quarters of them are a float or the next double beside a float.
template <class T, class Encode>
int doubles_that_differ(Encode encode) {
  std::mt19937_64 random(1);
  int wrong = 0;
  for (int i = 0; i < 1 << 20; ++i) {
    double value = std::bit_cast<double>(random());
    if (i % 4 != 0) {
      const auto float_bits = static_cast<std::uint32_t>(random()) & (i % 4 == 1 ? 0xffffffffU : 0xfffff000U);
      const double exact = std::bit_cast<float>(float_bits);
      value = std::bit_cast<double>(std::bit_cast<std::uint64_t>(exact) + (random() % 3 - 1));
    }
    wrong += T(value).bits() != encode(value) ? 1 : 0;
  }
  return wrong;
}

}  // namespace

TEST_CASE("CUDA decodes every bit pattern to the same float", "[cuda][scalar]") {
  CHECK(decodings_that_differ<hocket::half>(cuda_conversions::decode_half) == 0);
  CHECK(decodings_that_differ<hocket::bfloat16>(cuda_conversions::decode_bfloat16) == 0);
  CHECK(decodings_that_differ<hocket::float8_e4m3>(cuda_conversions::decode_e4m3) == 0);
  CHECK(decodings_that_differ<hocket::float8_e5m2>(cuda_conversions::decode_e5m2) == 0);
}

TEST_CASE("CUDA encodes doubles to the same bits", "[cuda][scalar]") {
  CHECK(doubles_that_differ<hocket::half>([](double value) { return __half_raw(__double2half(value)).x; }) == 0);
  CHECK(doubles_that_differ<hocket::bfloat16>(
            [](double value) { return __nv_bfloat16_raw(__double2bfloat16(value)).x; }) == 0);
}

TEST_CASE("CUDA encodes every float to the same half", "[.exhaustive][cuda][scalar]") {
  check_every_float<hocket::half>([](float value) { return cuda_conversions::encode_half(value); });
}

TEST_CASE("CUDA encodes every float to the same bfloat16", "[.exhaustive][cuda][scalar]") {
  check_every_float<hocket::bfloat16>([](float value) { return cuda_conversions::encode_bfloat16(value); });
}

TEST_CASE("CUDA encodes every float to the same float8_e4m3", "[.exhaustive][cuda][scalar]") {
  check_every_float<hocket::float8_e4m3>([](float value) { return cuda_conversions::encode_e4m3(value); });
}

TEST_CASE("CUDA encodes every float to the same float8_e5m2", "[.exhaustive][cuda][scalar]") {
  check_every_float<hocket::float8_e5m2>([](float value) { return cuda_conversions::encode_e5m2(value); });
}

#endif
