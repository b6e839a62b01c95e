// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Buckets on their way: over the ranks that share a copy of the model, and from there, where there are replicas, over
/// those. Completions come in any order; here they are dealt with in the order of launching, so that all ranks launch
/// what follows one in one order too.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>

#include <chrono>
#include <cstddef>
#include <deque>
#include <thread>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// `Launched` is a `started_reduction`. `landed(b, across, goes_on)` is called for each bucket that is over, and may
/// launch it again, across.
template <class Launched>
class buckets_in_flight {
 public:
  /// @param goes_on whether it is to be launched across when it is over; told to `landed`
  void launch_within(std::size_t bucket, bool goes_on, Launched started) {
    within_.push_back({bucket, goes_on, std::move(started)});
  }
  void launch_across(std::size_t bucket, Launched started) { across_.push_back({bucket, false, std::move(started)}); }

  std::size_t size() const noexcept { return within_.size() + across_.size(); }

  /// Moves all on. Does not block.
  template <class Landed>
  void move_on(const Landed& landed) {
    while (!within_.empty() && within_.front().started.test()) land(within_, false, landed);
    while (!across_.empty() && across_.front().started.test()) land(across_, true, landed);
  }

  /// Waits for one at least; does nothing if none is on its way.
  /// @param timeout of the collectives that were launched
  template <class Landed>
  void wait_for_one(std::chrono::nanoseconds timeout, const Landed& landed) {
    if (!within_.empty() && !across_.empty()) {
      wait_on_both(deadline::after(timeout), landed);
    } else if (!within_.empty()) {
      land(within_, false, landed);
    } else if (!across_.empty()) {
      land(across_, true, landed);
    }
  }

 private:
  struct in_flight_bucket {
    std::size_t bucket;
    bool goes_on;
    Launched started;
  };

  /// Waits for the first one, which is over then.
  template <class Landed>
  static void land(std::deque<in_flight_bucket>& queue, bool across, const Landed& landed) {
    queue.front().started.wait();
    const std::size_t bucket = queue.front().bucket;
    const bool goes_on = queue.front().goes_on;
    queue.pop_front();
    landed(bucket, across, goes_on);
  }

  /// A blocking wait moves one communicator on, and here two have something under way: other ranks may wait for either,
  /// so both are moved on until one has landed. Past the deadline, a blocking wait says what is wrong.
  template <class Landed>
  void wait_on_both(const deadline& end, const Landed& landed) {
    bool any = false;
    const auto told = [&](std::size_t bucket, bool across, bool goes_on) {
      any = true;
      landed(bucket, across, goes_on);
    };
    for (unsigned polls = 1; !any; ++polls) {
      move_on(told);
      if (any) return;
      polls < 1000 ? std::this_thread::yield() : std::this_thread::sleep_for(std::chrono::microseconds(50));
      if (end.passed()) land(across_, true, told);
    }
  }

  std::deque<in_flight_bucket> within_;
  std::deque<in_flight_bucket> across_;
};

}  // namespace detail
HOCKET_END_NAMESPACE
