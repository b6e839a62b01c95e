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

HOCKET_DECL void buckets_in_flight::launch_within(std::size_t bucket, bool continues_across, request started) {
  within_.push_back({bucket, continues_across, std::move(started)});
}

HOCKET_DECL void buckets_in_flight::launch_across(std::size_t bucket, request started) {
  across_.push_back({bucket, false, std::move(started)});
}

HOCKET_DECL void buckets_in_flight::move_on(completion_handler on_completed) {
  while (!within_.empty() && within_.front().started.test()) complete_first(within_, false, on_completed);
  while (!across_.empty() && across_.front().started.test()) complete_first(across_, true, on_completed);
}

HOCKET_DECL void buckets_in_flight::wait_for_one(std::chrono::nanoseconds timeout, completion_handler on_completed) {
  if (!within_.empty() && !across_.empty()) {
    wait_on_both(deadline::after(timeout), on_completed);
  } else if (!within_.empty()) {
    complete_first(within_, false, on_completed);
  } else if (!across_.empty()) {
    complete_first(across_, true, on_completed);
  }
}

HOCKET_DECL void buckets_in_flight::clear() noexcept {
  across_.clear();
  within_.clear();
}

/// Waits for the first bucket of the queue and removes it.
HOCKET_DECL void buckets_in_flight::complete_first(std::deque<in_flight_bucket>& queue, bool across,
                                                   completion_handler on_completed) {
  queue.front().started.wait();
  const std::size_t bucket = queue.front().bucket;
  const bool continues_across = queue.front().continues_across;
  queue.pop_front();
  on_completed(bucket, across, continues_across);
}

/// Progresses both communicators until a bucket has completed. A blocking wait would progress only one of them, but
/// other ranks may wait for either. After the deadline, a blocking wait reports the failure.
HOCKET_DECL void buckets_in_flight::wait_on_both(const deadline& end, completion_handler on_completed) {
  bool any = false;
  const auto counted = [&](std::size_t bucket, bool across, bool continues_across) {
    any = true;
    on_completed(bucket, across, continues_across);
  };
  for (unsigned polls = 1; !any; ++polls) {
    move_on(counted);
    if (any) return;
    polls < 1000 ? std::this_thread::yield() : std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (end.passed()) complete_first(across_, true, counted);
  }
}

}  // namespace detail
HOCKET_END_NAMESPACE
