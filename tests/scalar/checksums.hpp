// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Checksums over conversions of all floats, so that a machine without CUDA can compare with CUDA's results from
/// elsewhere. One wrong result always changes the checksum of its block; several are hidden with probability 2^-64.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace scalar_checksums {

/// Block b holds the floats with bits [b * 2^28, (b + 1) * 2^28).
constexpr std::size_t block_count = 16;
constexpr std::uint64_t block_size = std::uint64_t{1} << 28;
constexpr std::size_t chunk_size = 4096;

/// CUDA's results for one type: checksums of the encodings of all floats by block, and of the decodings of patterns.
struct record {
  std::array<std::uint64_t, block_count> encoded;
  std::uint64_t decoded;
};

/// Extends a checksum. Each step is a bijection of the state and of the input, and the order matters. The first state
/// must not be 0, because zeros would not change it.
template <class Unsigned>
std::uint64_t extend(std::uint64_t state, const Unsigned* values, std::size_t count) {
  constexpr std::size_t per_word = 8 / sizeof(Unsigned);
  for (std::size_t i = 0; i < count; i += per_word) {
    std::uint64_t word = 0;
    for (std::size_t j = 0; j < per_word; ++j) word |= std::uint64_t{values[i + j]} << (8 * sizeof(Unsigned) * j);
    state = (state ^ word) * 0x9e3779b97f4a7c15U;
    state ^= state >> 32;
  }
  return state;
}

/// Calls consume(first_float_bits, encodings, chunk_size) for all chunks of a block, in order.
template <class Bits, class Encode, class Consume>
void for_each_chunk(std::size_t block, Encode encode, Consume consume) {
  std::array<Bits, chunk_size> encodings;
  for (std::uint64_t offset = 0; offset < block_size; offset += chunk_size) {
    const auto first = static_cast<std::uint32_t>(block * block_size + offset);
    for (std::uint32_t i = 0; i < chunk_size; ++i) encodings[i] = encode(std::bit_cast<float>(first + i));
    consume(first, encodings.data());
  }
}

template <class Bits, class Encode>
std::uint64_t checksum_of_encodings(std::size_t block, Encode encode) {
  std::uint64_t state = block + 1;
  for_each_chunk<Bits>(block, encode,
                       [&](std::uint32_t, const Bits* encodings) { state = extend(state, encodings, chunk_size); });
  return state;
}

template <class Bits, class Decode>
std::uint64_t checksum_of_decodings(Decode decode) {
  std::vector<std::uint32_t> decodings;
  for (std::uint32_t bits = 0; bits < 1U << (8 * sizeof(Bits)); ++bits) {
    decodings.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(decode(static_cast<Bits>(bits)))));
  }
  return extend(1, decodings.data(), decodings.size());
}

/// Runs work(block) for all blocks on as many threads as there are cores.
template <class Work>
void for_each_block(Work work) {
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    for (std::size_t block = next++; block < block_count; block = next++) work(block);
  };
  std::vector<std::jthread> helpers;
  for (unsigned i = 1; i < std::min<unsigned>(block_count, std::thread::hardware_concurrency()); ++i) {
    helpers.emplace_back(run);
  }
  run();
}

template <class Bits, class Encode, class Decode>
record make_record(Encode encode, Decode decode) {
  record result{};
  for_each_block([&](std::size_t block) { result.encoded[block] = checksum_of_encodings<Bits>(block, encode); });
  result.decoded = checksum_of_decodings<Bits>(decode);
  return result;
}

}  // namespace scalar_checksums
