// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Tags for things that all ranks of a communicator make together and then send messages for, apart from each other's
/// and from the user's. They are dealt out in turn, so that all ranks find the same ones without a word. But there are
/// few of them on some transports: when they come round, it matters who still has theirs, and each rank gives back at
/// its own time. So a rank says how far its own reach back, and whoever takes tags looks at all ranks' answers.
#pragma once

#include <hocket/core/config.hpp>

#include <cstdint>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Deals out consecutive tags, modulo 2^32. Not for several threads at once.
class tag_allocator {
 public:
  /// The first of `count` tags that nobody has who has them now, as long as fewer than 2^32 reach back.
  std::uint32_t take(std::uint32_t count) {
    taken_.push_back(next_);
    return std::exchange(next_, next_ + count);
  }

  /// What began with `first` is over on this rank.
  void give_back(std::uint32_t first) noexcept { std::erase(taken_, first); }

  /// How many tags it is from the oldest one that has not been given back on this rank to the next one.
  std::uint32_t reach() const noexcept { return taken_.empty() ? 0 : next_ - taken_.front(); }

 private:
  std::uint32_t next_ = 0;
  std::vector<std::uint32_t> taken_;  ///< the first tag of each, in the order of taking
};

/// Tags that are given back when this ends. The turns must outlive it.
class tag_lease {
 public:
  tag_lease() = default;
  tag_lease(tag_allocator& allocator, std::uint32_t count) : allocator_(&allocator), first_(allocator.take(count)) {}
  tag_lease(tag_lease&& other) noexcept : allocator_(std::exchange(other.allocator_, nullptr)), first_(other.first_) {}
  tag_lease& operator=(tag_lease&& other) noexcept {
    std::swap(allocator_, other.allocator_);
    std::swap(first_, other.first_);
    return *this;
  }
  ~tag_lease() {
    if (allocator_ != nullptr) allocator_->give_back(first_);
  }

  std::uint32_t first() const noexcept { return first_; }

 private:
  tag_allocator* allocator_ = nullptr;
  std::uint32_t first_ = 0;
};

}  // namespace detail
HOCKET_END_NAMESPACE
