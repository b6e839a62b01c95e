// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The number of rounds in which doubling reaches all ranks.
#pragma once

#include <hocket/core/config.hpp>

#include <bit>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// Returns the smallest k with 2^k >= n, for n >= 1; 0 for smaller n.
constexpr int ceiling_log2(int n) noexcept {
  return n <= 1 ? 0 : static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1)));
}

}  // namespace plan
HOCKET_END_NAMESPACE
