// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a collective on device memory has in addition to one on host memory: tags of its buffers, and resources.
#pragma once

#include <hocket/collective/device/call_resources.hpp>
#include <hocket/collective/device/memory.hpp>
#include <hocket/collective/host/host_call.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/transport/cuda_ipc/memory_space.hpp>

#include <memory>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// A host call with `in` and `out` in memory of other kinds.
template <class Driver>
struct device_call_spec {
  host_call host;
  cuda_ipc::memory_space in_tag;
  cuda_ipc::memory_space out_tag;
  cuda::stream_of<Driver> stream;
  mutable std::shared_ptr<device_call_resources<Driver>> resources =
      nullptr;  ///< set by `check`, where running out of memory is handled
  const char* name = host.name;

  int root() const noexcept { return host.what.root; }
  bool has_input() const noexcept { return host.what.kind != plan::collective_kind::broadcast; }

  template <class State>
  outcome check(State& state) const {
    outcome wrong = host.check(state);
    if (wrong.failed()) return wrong;
    resources = std::make_shared<device_call_resources<Driver>>(stream);
    const typename device_call_resources<Driver>::buffer buffers[] = {
        {"in", in_tag, host.in, host.in_count * host.element_size},
        {has_input() ? "out" : "the buffer", out_tag, host.out, host.out_count * host.element_size}};
    return resources->check(state, buffers);
  }
};

}  // namespace detail
HOCKET_END_NAMESPACE
