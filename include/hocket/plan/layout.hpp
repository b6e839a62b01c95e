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
class layout {
 public:
  constexpr layout() noexcept = default;
  /// 0 pieces, which no plan can have, count as 1.
  constexpr layout(std::size_t block_size, std::uint32_t blocks, std::uint32_t pieces) noexcept
      : block_size_(block_size), blocks_(blocks), pieces_(std::max<std::uint32_t>(pieces, 1)) {
    piece_size_ = block_size / pieces_;
    longer_ = block_size % pieces_;
  }

  constexpr std::size_t block_size() const noexcept { return block_size_; }
  constexpr std::uint32_t blocks() const noexcept { return blocks_; }
  constexpr std::uint32_t pieces() const noexcept { return pieces_; }

  /// Where chunk `c` begins. `c` may be one past the last chunk: then it is the length of the vector.
  constexpr std::size_t begin(std::uint32_t c) const noexcept {
    if (pieces_ == 1) return c * block_size_;
    if (blocks_ == 1) return begin_in_block(c);
    return c / pieces_ * block_size_ + begin_in_block(c % pieces_);
  }

  /// The elements of `count` chunks from `first` on.
  constexpr extent chunks(std::uint32_t first, std::uint32_t count) const noexcept {
    const std::size_t from = begin(first);
    return {from, begin(first + count) - from};
  }

  constexpr std::uint32_t chunk_count() const noexcept { return blocks_ * pieces_; }
  constexpr std::size_t size() const noexcept { return block_size_ * blocks_; }

  /// The size of the largest chunk, and so of a scratch slot.
  constexpr std::size_t largest_chunk() const noexcept { return piece_size_ + (longer_ > 0 ? 1 : 0); }

 private:
  constexpr std::size_t begin_in_block(std::uint32_t piece) const noexcept {
    return piece * piece_size_ + std::min<std::size_t>(piece, longer_);
  }

  std::size_t block_size_ = 0;
  std::size_t piece_size_ = 0;  ///< divided once, as every action asks for it
  std::size_t longer_ = 0;      ///< how many pieces of a block have one element more
  std::uint32_t blocks_ = 1;
  std::uint32_t pieces_ = 1;
};

}  // namespace plan
HOCKET_END_NAMESPACE
