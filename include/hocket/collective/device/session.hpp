// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What calls on memory of devices in which the host takes part have in common: the driver, the stream's context, streams of
/// the communicator's own, and what is looked at before such a call begins.
#pragma once

#include <hocket/collective/device/memory.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/transport/cuda_ipc/context_scope.hpp>
#include <hocket/transport/cuda_ipc/driver_status.hpp>
#include <hocket/transport/cuda_ipc/driver_types.hpp>
#include <hocket/transport/cuda_ipc/memory_query.hpp>
#include <hocket/transport/cuda_ipc/memory_space.hpp>
#include <hocket/transport/cuda_ipc/staging.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// The driver, context and lane of one call.
template <class Driver>
class device_session {
 public:
  explicit device_session(const cuda::stream_of<Driver>& stream) noexcept
      : through_(stream.through), stream_(stream.handle) {}
  device_session(const device_session&) = delete;
  device_session& operator=(const device_session&) = delete;
  ~device_session() {
    if (lane_ != nullptr) lanes_->give_back(std::move(lane_));
  }

  /// What is wrong with the call `host`, had it buffers of the host, whose `in` and `out` were passed with these tags. What
  /// the driver complains of is kept for `take_complaint`: others may be in the call.
  template <class State, class HostJob>
  outcome check(State& state, const HostJob& host, cuda_ipc::memory_space in_tag, cuda_ipc::memory_space out_tag) {
    outcome wrong = host.check(state);
    if (wrong.failed()) return wrong;
    constexpr bool has_input = HostJob::goal != plan::goal_kind::broadcast;
    const buffer buffers[] = {{"in", in_tag, host.in.data(), host.in.size_bytes()},
                              {has_input ? "out" : "the buffer", out_tag, host.out.data(), host.out.size_bytes()}};
    if (stream_ == nullptr) {
      return make_failure(errc::invalid_argument,
                          "the stream is null, and no default is taken: say cudaStreamLegacy or cudaStreamPerThread if "
                          "one of these is meant");
    }
    lanes_ = &state.kept().template get<cuda_ipc::staging_lanes<Driver>>();
    failure misuse;
    complaint_ = examine(buffers, misuse);
    return misuse;
  }
  failure take_complaint() { return std::exchange(complaint_, failure()); }

  /// Why a call ends that still waits for the driver.
  static failure overdue() {
    return make_failure(
        errc::timeout,
        "the work that the stream was given before this call, or a copy after it, did not end: nothing of "
        "the call is wrong on other ranks");
  }

  /// The call has failed: what is still copied must be over before the caller's memory is freed in the stream's order.
  void settle() noexcept {
    const cuda_ipc::context_scope scope(driver(), context_);
    if (lane_->join_both(stream_)) lane_->quiet(deadline::after(std::chrono::seconds(1)));
  }

  Driver& driver() const noexcept { return *through_; }
  cuda_ipc::context_handle context() const noexcept { return context_; }
  cuda_ipc::stream_handle stream() const noexcept { return stream_; }
  cuda_ipc::staging_lane<Driver>* lane() const noexcept { return lane_.get(); }

 private:
  struct buffer {
    const char* name;
    cuda_ipc::memory_space tag;
    const void* data;
    std::size_t bytes;
  };

  failure examine(std::span<const buffer> buffers, failure& misuse) {
    if (failure found = lanes_->find(through_)) return found;
    cuda_ipc::status said = driver().stream_get_ctx(stream_, &context_);
    if (said != cuda_ipc::status::success) return status_failure(driver(), "asking for the stream's context", said);
    const cuda_ipc::context_scope scope(driver(), context_);
    if (scope.said() != cuda_ipc::status::success) {
      return status_failure(driver(), "entering the stream's context", scope.said());
    }
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
      misuse = wrong_tag(each.name, each.tag, is);
      return {};
    }
    return lanes_->take({through_, context_}, lane_);
  }

  Driver* through_;
  const cuda_ipc::stream_handle stream_;
  cuda_ipc::context_handle context_ = nullptr;
  cuda_ipc::staging_lanes<Driver>* lanes_ = nullptr;
  std::unique_ptr<cuda_ipc::staging_lane<Driver>> lane_;
  failure complaint_;
};

}  // namespace detail
HOCKET_END_NAMESPACE
