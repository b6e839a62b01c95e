// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What calls on device memory that need the host have in common: the driver, the stream's context, streams of the
/// communicator, and the checks before such a call begins.
#pragma once

#include <hocket/collective/device/memory.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/transport/cuda_ipc/context_scope.hpp>
#include <hocket/transport/cuda_ipc/driver_status.hpp>
#include <hocket/transport/cuda_ipc/driver_types.hpp>
#include <hocket/transport/cuda_ipc/memory_query.hpp>
#include <hocket/transport/cuda_ipc/memory_space.hpp>
#include <hocket/transport/cuda_ipc/staging.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// The driver, context and staging lanes of one call: one lane, or one for each direction of a message.
template <class Driver>
class device_call_resources {
 public:
  explicit device_call_resources(const cuda::stream_of<Driver>& stream) noexcept
      : through_(stream.through), stream_(stream.handle) {}
  device_call_resources(const device_call_resources&) = delete;
  device_call_resources& operator=(const device_call_resources&) = delete;
  ~device_call_resources() {
    for (lane_in_use& each : in_use_) {
      if (each.lane != nullptr) lanes_->return_lane(std::move(each.lane));
    }
  }

  /// One of the caller's buffers, as it was passed.
  struct buffer {
    const char* name;
    cuda_ipc::memory_space tag;
    const void* data;
    std::size_t bytes;
  };

  /// Checks a call on these buffers that needs so many lanes. `enter` reports errors of the driver later, because other
  /// ranks may have begun the call.
  template <class State>
  outcome check(State& state, std::span<const buffer> buffers, std::size_t lanes = 1) {
    if (stream_ == nullptr) {
      return make_failure(errc::invalid_argument,
                          "the stream is null, and there is no default stream: pass cudaStreamLegacy or "
                          "cudaStreamPerThread to use one of these");
    }
    lanes_ = &state.attributes().template get<cuda_ipc::staging_lanes<Driver>>();
    failure misuse;
    deferred_failure_ = examine(buffers, lanes, misuse);
    return misuse;
  }

  /// Enters the stream's context for the lifetime of `scope`. Returns why the call ends, if it does.
  failure enter(std::optional<cuda_ipc::context_scope<Driver>>& scope) {
    if (deferred_failure_) return std::exchange(deferred_failure_, failure());
    scope.emplace(driver(), context_);
    return scope->refused();
  }

  /// Orders later copies of a lane after the work enqueued on the stream before the call.
  failure follow(std::size_t which = 0) {
    lane_in_use& one = in_use_[which];
    if (one.follows) return {};
    one.follows = true;
    return one.lane->follow(stream_);
  }
  /// Sets `reached` when all work that was enqueued on the stream before the call has completed. For calls that do not
  /// copy to the host first.
  failure await_stream(bool& reached, std::size_t which = 0) {
    if (reached) return {};
    if (!in_use_[which].follows) {
      if (failure found = follow(which)) return found;
      if (failure found = in_use_[which].lane->note_down(0)) return found;
    }
    return in_use_[which].lane->is_down(0, reached);
  }

  /// Returns the cause of a timeout of a call that still waits for the driver.
  static failure overdue() {
    return make_failure(
        errc::timeout,
        "the work enqueued on the stream before this call, or a copy after it, did not complete: no other "
        "rank caused this");
  }

  /// After a failure: orders later work of the stream after copies in flight, so that the caller may free its memory.
  void settle() noexcept {
    for (const lane_in_use& each : in_use_) {
      if (!each.follows) continue;
      const cuda_ipc::context_scope scope(driver(), context_);
      if (each.lane->join_both(stream_)) each.lane->quiet(deadline::after(std::chrono::seconds(1)));
    }
  }

  Driver& driver() const noexcept { return *through_; }
  cuda_ipc::context_handle context() const noexcept { return context_; }
  cuda_ipc::stream_handle stream() const noexcept { return stream_; }
  cuda_ipc::staging_lane<Driver>& lane(std::size_t which = 0) const noexcept { return *in_use_[which].lane; }

 private:
  /// Each direction of a message has its own lane.
  static constexpr std::size_t most_lanes = 2;

  struct lane_in_use {
    std::unique_ptr<cuda_ipc::staging_lane<Driver>> lane;
    bool follows = false;  ///< whether the lane is ordered after the stream
  };

  failure examine(std::span<const buffer> buffers, std::size_t lanes, failure& misuse) {
    if (failure found = lanes_->find(through_)) return found;
    cuda_ipc::status returned = driver().stream_get_ctx(stream_, &context_);
    if (returned != cuda_ipc::status::success)
      return status_failure(driver(), "asking the driver for the stream's context", returned);
    const cuda_ipc::context_scope scope(driver(), context_);
    if (failure found = scope.refused()) return found;
    auto capturing = cuda_ipc::capture_status::none;
    returned = driver().stream_is_capturing(stream_, &capturing);
    if (returned != cuda_ipc::status::success)
      return status_failure(driver(), "asking the driver whether the stream is being captured", returned);
    if (capturing != cuda_ipc::capture_status::none) {
      misuse = make_failure(
          errc::invalid_argument,
          "the stream is being captured into a graph, which can't contain the host's part of this call: make "
          "the call outside the capture");
      return {};
    }
    for (const buffer& each : buffers) {
      if (each.bytes == 0) continue;
      auto is = cuda_ipc::memory_space::plain;
      failure found = space_of(driver(), reinterpret_cast<cuda_ipc::address>(each.data), is);
      if (found) return found;
      if (is == each.tag) continue;
      misuse = wrong_tag(each.name, each.data, each.tag, is);
      return {};
    }
    for (std::size_t i = 0; i < lanes; ++i) {
      if (failure found = lanes_->acquire_lane({through_, context_}, in_use_[i].lane)) return found;
    }
    return {};
  }

  Driver* through_;
  const cuda_ipc::stream_handle stream_;
  cuda_ipc::context_handle context_ = nullptr;
  cuda_ipc::staging_lanes<Driver>* lanes_ = nullptr;
  std::array<lane_in_use, most_lanes> in_use_;
  failure deferred_failure_;
};

}  // namespace detail
HOCKET_END_NAMESPACE
