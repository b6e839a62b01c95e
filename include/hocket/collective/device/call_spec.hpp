// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The call spec of a collective on tagged buffers: a host call spec, kinds of memory, a stream and resources.
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

/// A host call spec whose `in` and `out` may be in device, pinned or managed memory.
template <class Driver>
struct device_call_spec {
  host_call host;
  cuda_ipc::memory_space in_tag;
  cuda_ipc::memory_space out_tag;
  cuda::stream_of<Driver> stream;
  mutable std::shared_ptr<device_call_resources<Driver>> resources =
      nullptr;  ///< allocated by `check`, which is const; callers of `check` handle a lack of host memory
  const char* name = host.name;

  int root() const noexcept { return host.what.root; }
  bool has_input() const noexcept { return host.what.kind != plan::collective_kind::broadcast; }  ///< separate from out

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
