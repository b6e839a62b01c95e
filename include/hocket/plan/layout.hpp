// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Where the chunks of a plan lie in a vector: how many elements each has, and where it begins.
#pragma once

#include <hocket/core/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// Elements [begin, begin + size).
struct extent {
  std::size_t begin = 0;
  std::size_t size = 0;
};

/// A vector of `blocks` blocks of `block_size` elements, each cut into `pieces` chunks whose sizes differ by at most
/// one, the longer ones first. Chunks may be empty.
struct layout {
  std::size_t block_size = 0;
  std::uint32_t blocks = 1;
  std::uint32_t pieces = 1;

  /// Where chunk `c` begins. `c` may be one past the last chunk: then it is the length of the vector.
  constexpr std::size_t begin(std::uint32_t c) const noexcept {
    if (pieces == 1) return c * block_size;
    const std::size_t block = c / pieces;
    const std::size_t piece = c % pieces;
    return block * block_size + piece * (block_size / pieces) + std::min<std::size_t>(piece, block_size % pieces);
  }

  /// The elements of `count` chunks from `first` on.
  constexpr extent chunks(std::uint32_t first, std::uint32_t count) const noexcept {
    const std::size_t from = begin(first);
    return {from, begin(first + count) - from};
  }

  constexpr std::uint32_t chunk_count() const noexcept { return blocks * pieces; }
  constexpr std::size_t size() const noexcept { return block_size * blocks; }

  /// The size of the largest chunk, and so of a scratch slot.
  constexpr std::size_t largest_chunk() const noexcept { return (block_size + pieces - 1) / pieces; }
};

}  // namespace plan
HOCKET_END_NAMESPACE
