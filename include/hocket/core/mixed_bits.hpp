// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A hash of 64 bits, which is equal on all machines.
#pragma once

#include <hocket/core/config.hpp>

#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// The golden ratio: its bits after the point. Multiples of it differ in many bits, which `mixed_bits` spreads over all.
inline constexpr std::uint64_t golden_ratio = 0x9e3779b97f4a7c15U;

/// Returns a hash of `bits`; no two arguments have the same. It is the last step of SplitMix64.
constexpr std::uint64_t mixed_bits(std::uint64_t bits) noexcept {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31);
}

}  // namespace detail
HOCKET_END_NAMESPACE
