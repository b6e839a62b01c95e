// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Blocks of shared memory for the payload of messages, which two processes pass to each other.
///
/// A block belongs to one of the two, which alone may write to it. It goes to the other one with the message that is in
/// it, and the next message back is written into the block that has been read last. So the core that writes has the
/// block's cache lines already, because it has just read them. In a ring per direction, each line would cross twice per
/// message: once to the reader, and back to the writer before it can be written again.
///
/// If messages go in one direction only, their receiver gives blocks back once their sender has few.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/cpu.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace host {

/// The size and number of blocks that each of two processes has at first, in its own memory.
struct block_layout {
  static constexpr std::uint32_t most = 128;  ///< number
  static constexpr std::size_t least_bytes = 512, most_bytes = 16384;

  std::size_t bytes = most_bytes;  ///< of a block
  std::uint32_t count = most;

  /// Blocks that together have at most `all` bytes. For fewer bytes they become smaller rather than fewer than 32.
  static constexpr block_layout within(std::size_t all) noexcept {
    const std::size_t bytes = std::clamp(all / 32, least_bytes, most_bytes);
    return {bytes, static_cast<std::uint32_t>(std::clamp<std::size_t>(all / bytes, 1, most))};
  }
  /// Distance between two blocks. If it were a power of two, the first lines of all blocks would have to share the few
  /// places of a cache that fit to it.
  constexpr std::size_t stride() const noexcept { return bytes + platform::cache_line; }
  constexpr std::size_t all_bytes() const noexcept { return count * stride(); }
};

/// Blocks that one process has given back to the other, in whose memory this is.
struct alignas(platform::cache_line) returned_blocks {
  std::atomic<std::uint32_t> number;  ///< since the start
  alignas(platform::cache_line) std::array<std::uint16_t, 2 * block_layout::most> indices;
};

/// The blocks that belong to this process, among those that two processes share. Not thread-safe.
class block_stack {
 public:
  using index = std::uint16_t;

  block_stack() = default;
  /// `low`, `high`: the blocks in the memory of the lower and of the higher rank, which are the same if a rank shares
  /// them with itself. `in`, `out`: the zeroed list of this process and of the other one.
  block_stack(std::byte* low, std::byte* high, bool is_lower, const returned_blocks* in, returned_blocks* out,
              block_layout layout) noexcept
      : low_(low), high_(high), in_(in), out_(out), layout_(layout) {
    const std::uint32_t first = is_lower ? 0 : layout.count;
    for (std::uint32_t i = layout.count; i > 0; --i) put(static_cast<index>(first + i - 1));
  }

  /// Number of blocks that this process has, as far as it has looked.
  std::uint32_t size() const noexcept { return size_; }
  /// Returns whether this process has at most `few` blocks less than at first.
  bool lacks_at_most(std::uint32_t few) noexcept {
    if (size_ + few >= layout_.count) return true;
    look_for_returned();
    return size_ + few >= layout_.count;
  }
  /// Returns whether this process has a block.
  bool available() noexcept { return size_ > 0 || look_for_returned(); }

  std::byte* at(index one) const noexcept {
    return one < layout_.count ? low_ + one * layout_.stride() : high_ + (one - layout_.count) * layout_.stride();
  }
  /// Removes and returns the block that was added last. `size()` must not be 0.
  index take() noexcept { return stack_[--size_]; }
  /// Adds a block that this process has read, or that no process has used.
  void put(index one) noexcept {
    is_read_here_[one] = true;
    stack_[size_++] = one;
  }
  /// Returns whether this process has read the block last, so that its core has the block's lines.
  bool is_read_here(index one) const noexcept { return is_read_here_[one]; }

  /// Returns the blocks beyond the first number if the other process has few: only `left`. The result tells whether it
  /// has returned any.
  bool return_surplus(std::uint32_t left) noexcept {
    if (left > layout_.count / 4) [[likely]]
      return false;
    look_for_returned();
    if (size_ <= layout_.count) return false;
    while (size_ > layout_.count) out_->indices[given_++ % out_->indices.size()] = take();
    out_->number.store(given_, std::memory_order_release);
    return true;
  }

 private:
  bool look_for_returned() noexcept {
    const std::uint32_t number = in_->number.load(std::memory_order_acquire);
    while (seen_ != number) {
      const index one = in_->indices[seen_++ % in_->indices.size()];
      is_read_here_[one] = false;
      stack_[size_++] = one;
    }
    return size_ > 0;
  }

  std::byte* low_ = nullptr;
  std::byte* high_ = nullptr;
  const returned_blocks* in_ = nullptr;
  returned_blocks* out_ = nullptr;
  block_layout layout_;
  std::uint32_t size_ = 0;
  std::uint32_t seen_ = 0;   ///< number of returned blocks that this process has added
  std::uint32_t given_ = 0;  ///< number of blocks that this process has returned
  std::array<index, 2 * block_layout::most> stack_{};
  std::array<bool, 2 * block_layout::most> is_read_here_{};
};

}  // namespace host
HOCKET_END_NAMESPACE
