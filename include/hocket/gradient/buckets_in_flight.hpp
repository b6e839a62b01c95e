// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Buckets on their way: over the ranks that share a copy of the model, and from there, where there are replicas, over
/// those. Completions come in any order; here they are dealt with in the order of launching, so that all ranks launch
/// what follows one in one order too.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/function_view.hpp>
#include <hocket/core/request.hpp>

#include <chrono>
#include <cstddef>
#include <deque>

HOCKET_BEGIN_NAMESPACE
namespace detail {

class buckets_in_flight {
 public:
  /// Called as `landed(bucket, across, goes_on)` for each bucket that is over; it may launch the bucket again, across.
  using landing = function_view<void(std::size_t, bool, bool)>;

  /// @param goes_on whether it is to be launched across when it is over; told to `landed`
  void launch_within(std::size_t bucket, bool goes_on, request started);
  void launch_across(std::size_t bucket, request started);

  std::size_t size() const noexcept { return within_.size() + across_.size(); }

  /// Moves all on. Does not block.
  void move_on(landing landed);

  /// Waits for one at least; does nothing if none is on its way.
  /// @param timeout of the collectives that were launched
  void wait_for_one(std::chrono::nanoseconds timeout, landing landed);

  /// Ends all of them, as their destructors do.
  void clear() noexcept;

 private:
  struct in_flight_bucket {
    std::size_t bucket;
    bool goes_on;
    request started;
  };

  static void land(std::deque<in_flight_bucket>& queue, bool across, landing landed);
  void wait_on_both(const deadline& end, landing landed);

  std::deque<in_flight_bucket> within_;
  std::deque<in_flight_bucket> across_;
};

}  // namespace detail
HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/gradient/impl/buckets_in_flight.ipp>
#endif
