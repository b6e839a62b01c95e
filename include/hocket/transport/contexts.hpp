// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The context numbers that distinguish the messages of communicators on the same domain.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace transport {

/// The context numbers in use on one rank. 0 belongs to the first communicator. Thread-safe: several threads may split
/// communicators at the same time.
class contexts {
 public:
  /// Maximum number of communicators at a time.
  static constexpr std::uint32_t most = (1U << 16) - 1;

  /// Returns a number that may be free here; a different one each time, so that threads do not propose the same.
  /// Numbers wrap around after `most`.
  std::uint32_t propose() {
    const std::lock_guard lock(mutex_);
    if (used_.size() >= most) raise(errc::system, "there are 65535 communicators; no more can be created");
    last_ = last_ % most + 1;
    return last_;
  }

  /// Takes `context` and returns true if it is free.
  bool claim(std::uint32_t context) {
    const std::lock_guard lock(mutex_);
    const auto place = std::lower_bound(used_.begin(), used_.end(), context);
    if (place != used_.end() && *place == context) return false;
    used_.insert(place, context);
    last_ = context;
    return true;
  }

  /// Makes a number available again.
  void release(std::uint32_t context) {
    const std::lock_guard lock(mutex_);
    const auto place = std::lower_bound(used_.begin(), used_.end(), context);
    if (place != used_.end() && *place == context) used_.erase(place);
  }

  /// Releases a number that was claimed.
  class lease {
   public:
    /// Takes over a claimed number.
    lease(contexts& owner, std::uint32_t context) noexcept : owner_(owner), context_(context) {}
    lease(const lease&) = delete;
    lease& operator=(const lease&) = delete;
    ~lease() { owner_.release(context_); }

   private:
    contexts& owner_;
    const std::uint32_t context_;
  };

 private:
  std::mutex mutex_;
  std::uint32_t last_ = 0;
  std::vector<std::uint32_t> used_;  ///< in ascending order
};

}  // namespace transport
HOCKET_END_NAMESPACE
