// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The memory of a rank's activations and gradients while a schedule runs. Each is needed from one step of the row to
/// another, both known in advance. So memory is assigned once, and a step never allocates. Memory that is no longer
/// needed is reused; a buffer that is sent is needed until the row has waited for the send.
#pragma once

#include <hocket/core/buffer.hpp>
#include <hocket/core/config.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace pipeline {

/// The lifetime of a buffer that is needed from step `first` to step `last` of a row, inclusive.
struct lifetime {
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t bytes = 0;
};

/// Memory for buffers with known lifetimes, each aligned to a cache line for vector loops and to prevent false sharing.
/// Buffers of equal size whose lifetimes do not overlap share memory.
class buffers {
 public:
  static constexpr std::size_t alignment = hocket::detail::growing_buffer::alignment;

  buffers() = default;

  explicit buffers(const std::vector<lifetime>& wanted) : offsets_(wanted.size(), 0), sizes_(wanted.size(), 0) {
    std::vector<std::size_t> order(wanted.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return wanted[a].first < wanted[b].first; });
    for (const std::size_t i : order) {
      sizes_[i] = wanted[i].bytes;
      if (wanted[i].bytes != 0) offsets_[i] = place_for(wanted[i]);
    }
    begin_ = memory_.get(total_);
    std::fill_n(begin_, total_, std::byte{0});
  }

  /// Returns the memory of buffer `i`.
  std::span<std::byte> of(std::size_t i) const noexcept { return {begin_ + offsets_[i], sizes_[i]}; }

  std::size_t total_bytes() const noexcept { return total_; }

 private:
  struct slot {
    std::size_t offset;
    std::size_t bytes;
    std::size_t last;  ///< last step in which it is in use
  };

  std::size_t place_for(const lifetime& wanted) {
    for (slot& each : slots_) {
      if (each.bytes != wanted.bytes || each.last >= wanted.first) continue;
      each.last = wanted.last;
      return each.offset;
    }
    const std::size_t offset = total_;
    slots_.push_back({offset, wanted.bytes, wanted.last});
    total_ += (wanted.bytes + alignment - 1) / alignment * alignment;
    return offset;
  }

  std::vector<slot> slots_;
  std::vector<std::size_t> offsets_;
  std::vector<std::size_t> sizes_;
  std::size_t total_ = 0;
  hocket::detail::growing_buffer memory_;
  std::byte* begin_ = nullptr;
};

}  // namespace pipeline
HOCKET_END_NAMESPACE
