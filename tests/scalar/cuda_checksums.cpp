// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Writes recorded_checksums.hpp from CUDA's conversions alone (nothing of hocket is included here):
///
///     g++ -std=c++20 -O2 -pthread -isystem <cuda>/include -I tests tests/scalar/cuda_checksums.cpp -o cuda_checksums
///     ./cuda_checksums > tests/scalar/recorded_checksums.hpp
#include "scalar/checksums.hpp"
#include "scalar/cuda_conversions.hpp"

#include <chrono>
#include <cinttypes>
#include <cstdio>

namespace {

template <class Bits, class Encode, class Decode>
void print_record(const char* name, Encode encode, Decode decode) {
  const auto begin = std::chrono::steady_clock::now();
  const auto record = scalar_checksums::make_record<Bits>(encode, decode);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::fprintf(stderr, "%s: %.1f s\n", name, seconds.count());

  std::printf("\ninline constexpr record recorded_%s{\n    {", name);
  for (std::size_t block = 0; block < scalar_checksums::block_count; ++block) {
    if (block != 0) std::printf(block % 4 == 0 ? ",\n     " : ", ");
    std::printf("0x%016" PRIx64, record.encoded[block]);
  }
  std::printf("},\n    0x%016" PRIx64 "};\n", record.decoded);
}

}  // namespace

int main() {
  std::printf("// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n/// @file\n");
  std::printf("/// Checksums of the conversions in the headers of CUDA %d.%d, written by cuda_checksums.cpp.\n",
              CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  std::printf(
      "#pragma once\n\n// clang-format off\n#include \"scalar/checksums.hpp\"\n\nnamespace scalar_checksums {\n");
  print_record<std::uint16_t>(
      "half", [](float value) { return cuda_conversions::encode_half(value); }, cuda_conversions::decode_half);
  print_record<std::uint16_t>(
      "bfloat16", [](float value) { return cuda_conversions::encode_bfloat16(value); },
      cuda_conversions::decode_bfloat16);
  print_record<std::uint8_t>(
      "e4m3", [](float value) { return cuda_conversions::encode_e4m3(value); }, cuda_conversions::decode_e4m3);
  print_record<std::uint8_t>(
      "e5m2", [](float value) { return cuda_conversions::encode_e5m2(value); }, cuda_conversions::decode_e5m2);
  std::printf("\n}  // namespace scalar_checksums\n");
}
