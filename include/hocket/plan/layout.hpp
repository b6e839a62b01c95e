// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Where the chunks of a plan lie in a vector: how many elements each has, and where it begins.
#pragma once

#include <hocket/core/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// Elements [begin, begin + size).
struct extent {
  std::size_t begin = 0;  ///< index of the first element
  std::size_t size = 0;   ///< number of elements
};

/// A vector of `blocks` blocks, each of `block_size` elements or of a given length. Each block is cut into
/// `chunks_per_block` chunks whose sizes differ by at most one, the longer ones first. Blocks and chunks may be empty.
class layout {
 public:
  constexpr layout() noexcept = default;
  /// Treats 0 pieces, which is invalid in a plan, as 1.
  constexpr layout(std::size_t block_size, std::uint32_t blocks, std::uint32_t chunks_per_block) noexcept
      : block_size_(block_size), blocks_(blocks), chunks_per_block_(std::max<std::uint32_t>(chunks_per_block, 1)) {
    chunk_size_ = block_size / chunks_per_block_;
    longer_ = block_size % chunks_per_block_;
  }

  /// Block b is elements [offsets[b], offsets[b + 1]). The blocks + 1 offsets begin with 0 and must outlive the layout.
  static constexpr layout given(const std::size_t* offsets, std::uint32_t blocks,
                                std::uint32_t chunks_per_block) noexcept {
    layout made(longest_of(offsets, blocks), blocks, chunks_per_block);
    made.offsets_ = offsets;
    return made;
  }

  /// Size of each block, or of the longest block if the blocks have given lengths.
  constexpr std::size_t block_size() const noexcept { return block_size_; }
  constexpr bool has_given_lengths() const noexcept { return offsets_ != nullptr; }  ///< whether lengths may differ
  constexpr std::uint32_t blocks() const noexcept { return blocks_; }                ///< number of blocks
  constexpr std::uint32_t chunks_per_block() const noexcept { return chunks_per_block_; }  ///< chunks per block

  /// Returns the first element of chunk `c`. If `c` is one past the last chunk, returns the length of the vector.
  constexpr std::size_t begin(std::uint32_t c) const noexcept {
    if (offsets_ != nullptr) [[unlikely]]
      return begin_among_given(c);
    if (chunks_per_block_ == 1) return c * block_size_;
    if (blocks_ == 1) return begin_in_block(c);
    return c / chunks_per_block_ * block_size_ + begin_in_block(c % chunks_per_block_);
  }

  /// Returns the elements of `count` chunks, starting with chunk `first`.
  constexpr extent chunks(std::uint32_t first, std::uint32_t count) const noexcept {
    const std::size_t from = begin(first);
    return {from, begin(first + count) - from};
  }

  /// Returns the elements of block `b`.
  constexpr extent block(std::uint32_t b) const noexcept {
    if (offsets_ != nullptr) [[unlikely]]
      return {offsets_[b], offsets_[b + 1] - offsets_[b]};
    return {b * block_size_, block_size_};
  }

  constexpr std::uint32_t chunk_count() const noexcept { return blocks_ * chunks_per_block_; }  ///< number of chunks
  constexpr std::size_t size() const noexcept {
    return offsets_ != nullptr ? offsets_[blocks_] : block_size_ * blocks_;
  }

  /// Size of the largest chunk, which is also the size of a scratch slot.
  constexpr std::size_t largest_chunk() const noexcept { return chunk_size_ + (longer_ > 0 ? 1 : 0); }

 private:
  static constexpr std::size_t longest_of(const std::size_t* offsets, std::uint32_t blocks) noexcept {
    std::size_t longest = 0;
    for (std::uint32_t b = 0; b < blocks; ++b) longest = std::max(longest, offsets[b + 1] - offsets[b]);
    return longest;
  }

  constexpr std::size_t begin_among_given(std::uint32_t c) const noexcept {
    const std::uint32_t b = c / chunks_per_block_;
    const std::uint32_t piece = c % chunks_per_block_;
    if (piece == 0) return offsets_[b];  // `c` may be one past the last chunk
    const std::size_t length = offsets_[b + 1] - offsets_[b];
    return offsets_[b] + piece * (length / chunks_per_block_) +
           std::min<std::size_t>(piece, length % chunks_per_block_);
  }

  constexpr std::size_t begin_in_block(std::uint32_t piece) const noexcept {
    return piece * chunk_size_ + std::min<std::size_t>(piece, longer_);
  }

  std::size_t block_size_ = 0;
  std::size_t chunk_size_ = 0;  ///< computed once because every action needs it
  std::size_t longer_ = 0;      ///< number of pieces of a block that have one more element
  std::uint32_t blocks_ = 1;
  std::uint32_t chunks_per_block_ = 1;
  const std::size_t* offsets_ = nullptr;  ///< null: all blocks have `block_size_` elements
};

/// Writes the offsets of blocks of these lengths and the end of the last one, which `layout::given` requires. Returns the
/// end of the written range.
constexpr std::size_t* write_offsets(std::size_t* to, std::span<const std::size_t> lengths) noexcept {
  std::size_t begin = 0;
  *to++ = begin;
  for (const std::size_t each : lengths) *to++ = begin += each;
  return to;
}

}  // namespace plan
HOCKET_END_NAMESPACE
