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

#include <cstddef>
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
        {"in", in_tag, host.in, bytes_of(host.what.in_part(state.rank()), host.in_count)},
        {has_input() ? "out" : "the buffer", out_tag, host.out,
         bytes_of(host.what.out_part(state.rank()), host.out_count)}};
    return resources->check(state, buffers);
  }

 private:
  /// Returns the length of a buffer, of which nothing is used if this rank has no part of the vector in it.
  std::size_t bytes_of(plan::buffer_part part, std::size_t count) const noexcept {
    return part == plan::buffer_part::nothing ? 0 : count * host.element_size;
  }
};

}  // namespace detail
HOCKET_END_NAMESPACE
