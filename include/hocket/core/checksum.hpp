// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A checksum by which two ranks detect that bytes changed in transit.
#pragma once

#include <hocket/core/config.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Always differs if the bytes differ within a single aligned 8-byte word; other changes go undetected in one of 2^64
/// cases. Not secure against forgery. Processes four words at a time, so that memory bandwidth is the limit.
inline std::uint64_t checksum(std::span<const std::byte> bytes) noexcept {
  constexpr std::uint64_t multiplier = 0x9FB21C651E98DF25U;  // odd: each step is invertible, so no information is lost
  constexpr std::size_t lanes = 4;
  std::array<std::uint64_t, lanes> sums{1, 2, 3, 4};
  const auto step = [](std::uint64_t sum, std::uint64_t word) { return std::rotl(sum ^ word, 29) * multiplier; };
  const std::size_t size = bytes.size();
  for (; bytes.size() >= sizeof sums; bytes = bytes.subspan(sizeof sums)) {
    std::array<std::uint64_t, lanes> words;
    std::memcpy(words.data(), bytes.data(), sizeof words);
    for (std::size_t i = 0; i < lanes; ++i) sums[i] = step(sums[i], words[i]);
  }
  std::array<std::uint64_t, lanes> rest{};
  if (!bytes.empty()) std::memcpy(rest.data(), bytes.data(), bytes.size());
  std::uint64_t result = size;
  for (std::size_t i = 0; i < lanes; ++i) result = step(result, step(sums[i], rest[i]));
  return result ^ (result >> 32);
}

}  // namespace detail
HOCKET_END_NAMESPACE
