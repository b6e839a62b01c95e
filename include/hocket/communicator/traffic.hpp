// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How much data a rank has moved: to check formulas for the traffic of an algorithm or a training step.
#pragma once

#include <hocket/core/config.hpp>

#include <cstdint>

HOCKET_BEGIN_NAMESPACE

/// Bytes of elements that one rank has moved by calls on one communicator since it was created. Flags, headers, the
/// transport's overhead and copies within a rank are not counted.
struct traffic {
  std::uint64_t sent = 0;  ///< in messages, and written to other ranks' memory
  std::uint64_t read = 0;  ///< from other ranks' memory

  constexpr std::uint64_t total() const noexcept { return sent + read; }  ///< all bytes
  constexpr traffic& operator+=(const traffic& other) noexcept {
    sent += other.sent;
    read += other.read;
    return *this;
  }
  /// The bytes that were moved in between.
  friend constexpr traffic operator-(const traffic& later, const traffic& earlier) noexcept {
    return {later.sent - earlier.sent, later.read - earlier.read};
  }
  friend constexpr bool operator==(const traffic&, const traffic&) noexcept = default;
};

HOCKET_END_NAMESPACE
