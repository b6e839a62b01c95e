// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What calls on memory of devices in which the host takes part have in common: the driver, the stream's context, streams of
/// the communicator's own, and what is looked at before such a call begins.
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

/// The driver, context and lanes of one call: one, or one for each direction of a message.
template <class Driver>
class device_call_resources {
 public:
  explicit device_call_resources(const cuda::stream_of<Driver>& stream) noexcept
      : through_(stream.through), stream_(stream.handle) {}
  device_call_resources(const device_call_resources&) = delete;
  device_call_resources& operator=(const device_call_resources&) = delete;
  ~device_call_resources() {
    for (lane_in_use& each : in_use_) {
      if (each.lane != nullptr) lanes_->give_back(std::move(each.lane));
    }
  }

  /// One of the caller's buffers, as it was passed.
  struct buffer {
    const char* name;
    cuda_ipc::memory_space tag;
    const void* data;
    std::size_t bytes;
  };

  /// What is wrong with a call on these that needs so many lanes. What the driver complains of is kept for `enter`: others may
  /// be in the call.
  template <class State>
  outcome check(State& state, std::span<const buffer> buffers, std::size_t lanes = 1) {
    if (stream_ == nullptr) {
      return make_failure(errc::invalid_argument,
                          "the stream is null, and no default is taken: say cudaStreamLegacy or cudaStreamPerThread if "
                          "one of these is meant");
    }
    lanes_ = &state.attributes().template get<cuda_ipc::staging_lanes<Driver>>();
    failure misuse;
    complaint_ = examine(buffers, lanes, misuse);
    return misuse;
  }

  /// Enters the stream's context for as long as `scope` lives; or why the call ends.
  failure enter(std::optional<cuda_ipc::context_scope<Driver>>& scope) {
    if (complaint_) return std::exchange(complaint_, failure());
    scope.emplace(driver(), context_);
    return scope->refused();
  }

  /// What a lane is given from now on comes after what the stream was given before the call.
  failure follow(std::size_t which = 0) {
    lane_in_use& one = in_use_[which];
    if (one.follows) return {};
    one.follows = true;
    return one.lane->follow(stream_);
  }
  /// Until `reached`: whether all is done that the stream was given before the call. For what is done without a copy to the
  /// host, which would say so.
  failure await_stream(bool& reached, std::size_t which = 0) {
    if (reached) return {};
    if (!in_use_[which].follows) {
      if (failure found = follow(which)) return found;
      if (failure found = in_use_[which].lane->note_down(0)) return found;
    }
    return in_use_[which].lane->is_down(0, reached);
  }

  /// Why a call ends that still waits for the driver.
  static failure overdue() {
    return make_failure(
        errc::timeout,
        "the work that the stream was given before this call, or a copy after it, did not end: nothing of "
        "the call is wrong on other ranks");
  }

  /// The call has failed: what is still copied must be over before the caller's memory is freed in the stream's order.
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
  /// One direction of a message has a lane of its own.
  static constexpr std::size_t most_lanes = 2;

  struct lane_in_use {
    std::unique_ptr<cuda_ipc::staging_lane<Driver>> lane;
    bool follows = false;  ///< the stream
  };

  failure examine(std::span<const buffer> buffers, std::size_t lanes, failure& misuse) {
    if (failure found = lanes_->find(through_)) return found;
    cuda_ipc::status said = driver().stream_get_ctx(stream_, &context_);
    if (said != cuda_ipc::status::success) return status_failure(driver(), "asking for the stream's context", said);
    const cuda_ipc::context_scope scope(driver(), context_);
    if (failure found = scope.refused()) return found;
    auto capturing = cuda_ipc::capture_status::none;
    said = driver().stream_is_capturing(stream_, &capturing);
    if (said != cuda_ipc::status::success) return status_failure(driver(), "asking what the stream does", said);
    if (capturing != cuda_ipc::capture_status::none) {
      misuse = make_failure(
          errc::invalid_argument,
          "the stream is being captured into a graph, in which the host can't take part, as it does in this "
          "call: make it outside the capture");
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
      if (failure found = lanes_->take({through_, context_}, in_use_[i].lane)) return found;
    }
    return {};
  }

  Driver* through_;
  const cuda_ipc::stream_handle stream_;
  cuda_ipc::context_handle context_ = nullptr;
  cuda_ipc::staging_lanes<Driver>* lanes_ = nullptr;
  std::array<lane_in_use, most_lanes> in_use_;
  failure complaint_;
};

}  // namespace detail
HOCKET_END_NAMESPACE
