// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Tags for messages of objects that all ranks of a communicator create together, distinct from each other's and from
/// the user's tags. Tags are assigned in order, so all ranks get the same ones without communication. Some transports
/// have few tags, so they wrap around, and each rank releases its tags at a different time. So each rank reports how
/// far back its oldest tag in use lies, and a caller that takes tags checks the reports of all ranks.
#pragma once

#include <hocket/core/config.hpp>

#include <cstdint>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Assigns consecutive tags, modulo 2^32. Not thread-safe.
class tag_allocator {
 public:
  /// Returns the first of `count` tags that are not in use, provided that the tags in use span fewer than 2^32.
  std::uint32_t allocate(std::uint32_t count) {
    taken_.push_back(next_);
    return std::exchange(next_, next_ + count);
  }

  /// Releases the tags that begin with `first` on this rank.
  void deallocate(std::uint32_t first) noexcept { std::erase(taken_, first); }

  /// Distance from the oldest tag in use on this rank to the next tag.
  std::uint32_t reach() const noexcept { return taken_.empty() ? 0 : next_ - taken_.front(); }

 private:
  std::uint32_t next_ = 0;
  std::vector<std::uint32_t> taken_;  ///< the first tag of each lease, oldest first
};

/// Tags that are released when this object is destroyed. The allocator must outlive it.
class tag_lease {
 public:
  tag_lease() = default;
  tag_lease(tag_allocator& allocator, std::uint32_t count)
      : allocator_(&allocator), first_(allocator.allocate(count)) {}
  tag_lease(tag_lease&& other) noexcept : allocator_(std::exchange(other.allocator_, nullptr)), first_(other.first_) {}
  tag_lease& operator=(tag_lease&& other) noexcept {
    std::swap(allocator_, other.allocator_);
    std::swap(first_, other.first_);
    return *this;
  }
  ~tag_lease() {
    if (allocator_ != nullptr) allocator_->deallocate(first_);
  }

  std::uint32_t first() const noexcept { return first_; }

 private:
  tag_allocator* allocator_ = nullptr;
  std::uint32_t first_ = 0;
};

}  // namespace detail
HOCKET_END_NAMESPACE
