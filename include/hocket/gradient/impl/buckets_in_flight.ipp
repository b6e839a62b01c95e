// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Definitions of <hocket/gradient/buckets_in_flight.hpp>.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/request.hpp>
#include <hocket/gradient/buckets_in_flight.hpp>

#include <chrono>
#include <cstddef>
#include <deque>
#include <thread>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

HOCKET_DECL void buckets_in_flight::launch_within(std::size_t bucket, bool goes_on, request started) {
  within_.push_back({bucket, goes_on, std::move(started)});
}

HOCKET_DECL void buckets_in_flight::launch_across(std::size_t bucket, request started) {
  across_.push_back({bucket, false, std::move(started)});
}

HOCKET_DECL void buckets_in_flight::move_on(landing landed) {
  while (!within_.empty() && within_.front().started.test()) land(within_, false, landed);
  while (!across_.empty() && across_.front().started.test()) land(across_, true, landed);
}

HOCKET_DECL void buckets_in_flight::wait_for_one(std::chrono::nanoseconds timeout, landing landed) {
  if (!within_.empty() && !across_.empty()) {
    wait_on_both(deadline::after(timeout), landed);
  } else if (!within_.empty()) {
    land(within_, false, landed);
  } else if (!across_.empty()) {
    land(across_, true, landed);
  }
}

HOCKET_DECL void buckets_in_flight::clear() noexcept {
  across_.clear();
  within_.clear();
}

/// Waits for the first bucket of the queue and removes it.
HOCKET_DECL void buckets_in_flight::land(std::deque<in_flight_bucket>& queue, bool across, landing landed) {
  queue.front().started.wait();
  const std::size_t bucket = queue.front().bucket;
  const bool goes_on = queue.front().goes_on;
  queue.pop_front();
  landed(bucket, across, goes_on);
}

/// Progresses both communicators until a bucket has completed. A blocking wait would progress only one of them, but
/// other ranks may wait for either. After the deadline, a blocking wait reports the failure.
HOCKET_DECL void buckets_in_flight::wait_on_both(const deadline& end, landing landed) {
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

}  // namespace detail
HOCKET_END_NAMESPACE
