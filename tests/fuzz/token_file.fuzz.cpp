// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Token files: the last two bytes of the input are the type and the length of samples.
#include "fuzz.hpp"

#include <hocket/data/token_file.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hocket::data;
  using fuzz::require;
  if (size < 2) return 0;
  const token_type type = data[size - 2] % 2 == 0 ? token_type::u16 : token_type::u32;
  const std::uint64_t length = data[size - 1];
  fuzz::may_raise(0, [&] {
    const token_array tokens({"x.bin", std::as_bytes(std::span(data, size - 2))}, type);
    const token_samples samples(tokens, length);
    token_samples::batch_type all;
    for (std::uint64_t i = 0; i < samples.size(); ++i) {
      token_samples::batch_type batch;
      samples.append(i, batch);
      require(batch.size() == length + 1, "a sample has its tokens and the next one");
      require(all.empty() || all.back() == batch.front(), "samples overlap by a token");
      all.insert(all.end(), batch.begin(), batch.end());
    }
    require(tokens.size() < samples.size() * length + 1 + length, "few tokens are not used");
    fuzz::may_raise(0, [&] {
      samples.append(samples.size(), all);
      require(false, "a sample after the last is refused");
    });
  });
  return 0;
}
