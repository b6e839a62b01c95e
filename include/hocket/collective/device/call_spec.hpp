// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a collective on device memory has and one on host memory has not: where its buffers are, and the resources that it
/// uses.
#pragma once

#include <hocket/collective/device/call_resources.hpp>
#include <hocket/collective/device/memory.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/transport/cuda_ipc/memory_space.hpp>

#include <memory>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// The specification of a host call, with `in` and `out` elsewhere.
template <class HostSpec, class Driver>
struct device_call_spec {
  static constexpr plan::collective_kind collective = HostSpec::collective;
  static constexpr const char* name = HostSpec::name;
  static constexpr bool has_input = collective != plan::collective_kind::broadcast;
  using blocks_type = decltype(HostSpec::blocks);

  HostSpec host;
  cuda_ipc::memory_space in_tag;
  cuda_ipc::memory_space out_tag;
  cuda::stream_of<Driver> stream;
  mutable std::shared_ptr<device_call_resources<Driver>> resources =
      nullptr;  ///< from `check` on: where memory may run out

  template <class State>
  outcome check(State& state) const {
    outcome wrong = host.check(state);
    if (wrong.failed()) return wrong;
    resources = std::make_shared<device_call_resources<Driver>>(stream);
    const typename device_call_resources<Driver>::buffer buffers[] = {
        {"in", in_tag, host.in.data(), host.in.size_bytes()},
        {has_input ? "out" : "the buffer", out_tag, host.out.data(), host.out.size_bytes()}};
    return resources->check(state, buffers);
  }
};

}  // namespace detail
HOCKET_END_NAMESPACE
