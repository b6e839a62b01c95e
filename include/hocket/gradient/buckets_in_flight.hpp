// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Buckets in flight: first over the ranks that share a copy of the model, then over replicas, if any. Reductions
/// complete in any order, but are processed here in the order of their launch, so that all ranks launch the reductions
/// that follow in the same order.
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
  /// Called as `on_completed(bucket, across, continues_across)` for each completed bucket. May launch the bucket again,
  /// over replicas.
  using completion_handler = function_view<void(std::size_t, bool, bool)>;

  /// @param continues_across whether `on_completed` must launch the bucket over replicas; passed to `on_completed`
  void launch_within(std::size_t bucket, bool continues_across, request started);
  void launch_across(std::size_t bucket, request started);

  std::size_t size() const noexcept { return within_.size() + across_.size(); }

  /// Makes progress on all buckets. Does not block.
  void move_on(completion_handler on_completed);

  /// Waits until at least one bucket has completed; does nothing if none is in flight.
  /// @param timeout timeout of the launched collectives
  void wait_for_one(std::chrono::nanoseconds timeout, completion_handler on_completed);

  /// Ends all reductions in flight by their destructors.
  void clear() noexcept;

 private:
  struct in_flight_bucket {
    std::size_t bucket;
    bool continues_across;
    request started;
  };

  static void complete_first(std::deque<in_flight_bucket>& queue, bool across, completion_handler on_completed);
  void wait_on_both(const deadline& end, completion_handler on_completed);

  std::deque<in_flight_bucket> within_;
  std::deque<in_flight_bucket> across_;
};

}  // namespace detail
HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/gradient/impl/buckets_in_flight.ipp>
#endif
