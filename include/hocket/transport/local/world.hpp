// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Threads of one process as ranks: the meeting place at which they create communicators.
///
/// Ranks meet here only to exchange the addresses of shared memory, once per communicator. All later communication is
/// directly from thread to thread.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/core/text.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace local {

/// Shared by all ranks of one `local::run`. Thread-safe.
class world {
 public:
  /// Throws `invalid_argument` unless there is at least one rank.
  explicit world(int ranks)
      : ranks_(checked(ranks)), ranks_per_core_((ranks + platform::usable_cores() - 1) / platform::usable_cores()),
        lost_(index(ranks)) {
    blobs_.resize(static_cast<std::size_t>(ranks));
    present_.resize(static_cast<std::size_t>(ranks), false);
  }

  int size() const noexcept { return ranks_; }
  int ranks_per_core() const noexcept { return ranks_per_core_; }

  /// All-gather of blobs among all ranks. Throws `error`: `timeout` names a rank that did not arrive, `aborted` if a
  /// rank left.
  std::vector<std::vector<std::byte>> exchange(int rank, std::span<const std::byte> blob, deadline until) {
    std::unique_lock lock(mutex_);
    if (!wait_for(lock, until, [&] { return !leaving_; })) raise_missing(rank);
    blobs_[index(rank)].assign(blob.begin(), blob.end());
    present_[index(rank)] = true;
    ++arrived_;
    const std::size_t round = round_;
    if (arrived_ == ranks_) {
      leaving_ = true;
      ++round_;
      changed_.notify_all();
    } else if (!wait_for(lock, until, [&] { return round_ != round; })) {
      withdraw_and_raise(rank);
    }
    auto all = blobs_;
    if (--arrived_ == 0) {
      leaving_ = false;
      present_.assign(present_.size(), false);
      changed_.notify_all();
    }
    return all;
  }

  /// Ends all waits, because `rank` has left with an exception.
  void abandon(int rank) {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
    lost_[index(rank)].store(true, std::memory_order_relaxed);
    any_lost_.store(true, std::memory_order_release);
    changed_.notify_all();
  }

  /// Retains `memory` until `drop`, or until the world is destroyed.
  void keep(std::shared_ptr<void> memory) {
    const std::lock_guard lock(mutex_);
    kept_.push_back(std::move(memory));
  }
  /// Releases memory that is no longer needed.
  void drop(const void* memory) noexcept {
    std::shared_ptr<void> gone;
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(kept_.begin(), kept_.end(), [=](const auto& each) { return each.get() == memory; });
    if (found == kept_.end()) return;
    gone = std::move(*found);
    *found = std::move(kept_.back());
    kept_.pop_back();
  }

  /// True if a rank has left with an exception.
  bool any_lost() const noexcept { return any_lost_.load(std::memory_order_acquire); }
  bool lost(int rank) const noexcept { return lost_[index(rank)].load(std::memory_order_relaxed); }

 private:
  static int checked(int ranks) {
    if (ranks >= 1) return ranks;
    raise(errc::invalid_argument, hocket::detail::concat({"a world of threads needs at least 1 rank, not ", ranks}),
          {.operation = "local::world"});
  }

  static std::size_t index(int rank) noexcept { return static_cast<std::size_t>(rank); }

  template <class Condition>
  bool wait_for(std::unique_lock<std::mutex>& lock, deadline until, Condition condition) {
    const auto ready = [&] { return condition() || abandoned_; };
    if (until.never()) {
      changed_.wait(lock, ready);
    } else if (!changed_.wait_until(lock, until.when(), ready)) {
      return false;
    }
    return condition();
  }

  /// Withdraws a rank that has arrived and stops waiting, so that ranks that arrive later do not count it.
  [[noreturn]] void withdraw_and_raise(int rank) {
    --arrived_;
    present_[index(rank)] = false;
    blobs_[index(rank)].clear();
    raise_missing(rank);
  }

  [[noreturn]] void raise_missing(int rank) {
    error_context context{.operation = "connect", .rank = rank, .ranks = ranks_};
    if (abandoned_)
      raise(errc::aborted, "another rank ended with an exception before all ranks were connected", context);
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer == rank || present_[index(peer)]) continue;
      context.peer = peer;
      raise(errc::timeout, hocket::detail::concat({"rank ", peer, " has not shown up"}), context);
    }
    raise(errc::timeout,
          "a rank did not leave the previous exchange of all ranks before the deadline: set a longer timeout", context);
  }

  const int ranks_;
  const int ranks_per_core_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<std::byte>> blobs_;
  std::vector<bool> present_;
  int arrived_ = 0;
  std::size_t round_ = 0;
  bool leaving_ = false;
  bool abandoned_ = false;
  std::atomic<bool> any_lost_{false};
  std::vector<std::atomic<bool>> lost_;
  std::vector<std::shared_ptr<void>> kept_;
};

}  // namespace local
HOCKET_END_NAMESPACE
