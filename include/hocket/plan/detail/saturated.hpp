// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Sums and products of counts that stay at the largest number instead of overflowing.
#pragma once

#include <hocket/core/config.hpp>

#include <cstdint>
#include <limits>

HOCKET_BEGIN_NAMESPACE
namespace plan::detail {

constexpr std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b) noexcept {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  return a > most - b ? most : a + b;
}

constexpr std::uint64_t saturated_product(std::uint64_t a, std::uint64_t b) noexcept {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  return b != 0 && a > most / b ? most : a * b;
}

}  // namespace plan::detail
HOCKET_END_NAMESPACE
