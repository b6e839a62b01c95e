// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How fast samples are read from a mapped file, compared with a copy of the same bytes in the same order.
// unsanitized: it measures
// Presets that build everything with a sanitizer leave it out, because a sanitizer makes copies cost more than others.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#include <hocket/data/order.hpp>
#include <hocket/data/token_file.hpp>

#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace {

template <class Body>
double seconds_of(Body body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE("samples of 8 KiB are read in random order at 0.8 of the rate of memcpy") {
  using namespace hocket::data;
  constexpr std::size_t length = 2047, bytes = 8192, samples = 8192, per_batch = 32;
  const hocket_test::scratch_directory scratch;
  scratch.write("tokens", std::string(samples * length * 4 + 4, 'x'));
  const token_file file(scratch.path() + "/tokens", token_type::u32);
  const token_samples from = file.samples(length);
  REQUIRE(from.size() == samples);
  const epoch_order order = hocket::data::order(samples, 1).epoch(0);
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t i = 0; i < samples; ++i) numbers.push_back(order[i]);
  const hocket::data::opened_file mapped = hocket::data::open_file(scratch.path() + "/tokens");

  token_samples::batch_type batch;
  std::vector<std::byte> copies(per_batch * bytes);
  std::vector<double> ratios;
  for (int round = 0; round < 9; ++round) {
    const double reading = seconds_of([&] {
      for (std::size_t i = 0; i < samples; ++i) {
        if (i % per_batch == 0) batch.clear();
        from.append(numbers[i], batch);
      }
    });
    const double copying = seconds_of([&] {
      for (std::size_t i = 0; i < samples; ++i)
        std::memcpy(copies.data() + i % per_batch * bytes, mapped.bytes().data() + numbers[i] * length * 4, bytes);
    });
    if (round > 0) ratios.push_back(copying / reading);  // the first one maps the pages
  }
  REQUIRE(std::memcmp(batch.data(), copies.data(), copies.size()) == 0);
  std::sort(ratios.begin(), ratios.end());
  INFO("median ratio " << ratios[ratios.size() / 2]);
  CHECK(ratios[ratios.size() / 2] >= 0.8);
}
#endif
