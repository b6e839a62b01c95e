// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How much a rank has moved: what a formula of an algorithm or of a training's memory can be held against.
#pragma once

#include <hocket/core/config.hpp>

#include <cstdint>

HOCKET_BEGIN_NAMESPACE

/// Bytes of elements that one rank has moved by calls on one communicator, since that was made; flags, headers and what
/// a transport adds are not counted. Copies within a rank are not either.
struct traffic {
  std::uint64_t sent = 0;  ///< in messages, and written to other ranks' memory
  std::uint64_t read = 0;  ///< from other ranks' memory

  constexpr std::uint64_t total() const noexcept { return sent + read; }
  constexpr traffic& operator+=(const traffic& other) noexcept {
    sent += other.sent;
    read += other.read;
    return *this;
  }
  friend constexpr traffic operator-(const traffic& later, const traffic& earlier) noexcept {
    return {later.sent - earlier.sent, later.read - earlier.read};
  }
  friend constexpr bool operator==(const traffic&, const traffic&) noexcept = default;
};

HOCKET_END_NAMESPACE
