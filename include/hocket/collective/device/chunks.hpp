// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The chunks of a buffer that is too large to be staged at once. The buffer has one block for each rank, or one block.
/// Chunk c has at most `cut` elements of each block, from element c * `cut` on, so that ranks that agree on the lengths
/// of blocks agree on the chunks. Blocks that end early have no elements in later chunks.
#pragma once

#include <hocket/core/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

class chunked_blocks {
 public:
  chunked_blocks() = default;
  chunked_blocks(std::vector<std::size_t> lengths, std::size_t cut) : lengths_(std::move(lengths)), cut_(cut) {}

  std::size_t count() const noexcept { return lengths_.size(); }
  std::size_t length(std::size_t block) const noexcept { return lengths_[block]; }
  /// Returns the number of elements of all blocks.
  std::size_t total() const noexcept {
    std::size_t sum = 0;
    for (const std::size_t each : lengths_) sum += each;
    return sum;
  }

  /// Returns the offset of `chunk` in each block.
  std::size_t begin(std::uint32_t chunk) const noexcept { return chunk == 0 ? 0 : chunk * cut_; }
  /// Returns the number of elements of a block in the chunk.
  std::size_t size(std::uint32_t chunk, std::size_t block) const noexcept {
    const std::size_t length = lengths_[block], from = begin(chunk);
    return length <= from ? 0 : std::min(length - from, cut_);
  }
  /// Returns the number of elements of all blocks in the chunk.
  std::size_t size(std::uint32_t chunk) const noexcept {
    std::size_t sum = 0;
    for (std::size_t block = 0; block < lengths_.size(); ++block) sum += size(chunk, block);
    return sum;
  }
  void copy_sizes(std::uint32_t chunk, std::vector<std::size_t>& to) const {
    to.resize(lengths_.size());
    for (std::size_t block = 0; block < to.size(); ++block) to[block] = size(chunk, block);
  }

 private:
  std::vector<std::size_t> lengths_;
  std::size_t cut_ = std::numeric_limits<std::size_t>::max();
};

}  // namespace detail
HOCKET_END_NAMESPACE
