// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a collective on memory of devices has beside the host's: where its buffers are, and the session that it runs in.
#pragma once

#include <hocket/collective/device/memory.hpp>
#include <hocket/collective/device/session.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/transport/cuda_ipc/memory_space.hpp>

#include <memory>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// A host's job whose `in` and `out` are elsewhere.
template <class HostJob, class Driver>
struct placed_job {
  static constexpr plan::goal_kind goal = HostJob::goal;
  static constexpr const char* name = HostJob::name;
  static constexpr bool has_input = goal != plan::goal_kind::broadcast;
  using blocks_type = decltype(HostJob::blocks);

  HostJob host;
  cuda_ipc::memory_space in_tag;
  cuda_ipc::memory_space out_tag;
  cuda::stream_of<Driver> stream;
  mutable std::shared_ptr<device_session<Driver>> session = nullptr;  ///< from `check` on: where memory may run out

  template <class State>
  outcome check(State& state) const {
    outcome wrong = host.check(state);
    if (wrong.failed()) return wrong;
    session = std::make_shared<device_session<Driver>>(stream);
    const typename device_session<Driver>::buffer buffers[] = {
        {"in", in_tag, host.in.data(), host.in.size_bytes()},
        {has_input ? "out" : "the buffer", out_tag, host.out.data(), host.out.size_bytes()}};
    return session->check(state, buffers);
  }
};

}  // namespace detail
HOCKET_END_NAMESPACE
