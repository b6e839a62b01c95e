// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Collectives between devices that reach each other's memory, with operations compiled by nvcc: see group/peers.hpp
/// for the documentation.
#pragma once

#include <hocket/collective/device/memory.hpp>
#include <hocket/collective/host/call.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>
#include <hocket/group/peers.hpp>
#include <hocket/kernel/device/element_kernel.cuh>
#include <hocket/transport/cuda_ipc/driver.hpp>

#include <source_location>

HOCKET_BEGIN_NAMESPACE
namespace cuda {

/// Tables of the kernels that bound calls launch.
struct device_kernels {
  /// The kernel that combines two contributions at a time.
  template <class Op, class T>
  static const kernel::stream_kernel* each() noexcept {
    return &kernel::device::stream_kernel_of<Op, T>;
  }
  /// The kernel that combines all contributions in one pass.
  template <class Op, class T>
  static const kernel::stream_kernel* fused() noexcept {
    return &kernel::device::fused_kernel_of<Op, T>;
  }
};

/// `peers_of` with the driver of this machine.
template <class Domain>
using peers = peers_of<Domain, cuda_ipc::driver, device_kernels>;

/// Lets the devices of `comm`'s ranks reach each other's memory; this rank's device is that of `stream`. Collective:
/// see `peers_of::reach`. Options: `timeout`.
template <class Domain, call_options Options = options<>>
  requires hocket::detail::accepted_by<Options, hocket::detail::timeout_options>
peers<Domain> reach_peers(const communicator<Domain>& comm, const stream_ref& stream, const Options& how = {},
                          const std::source_location& site = std::source_location::current()) {
  const auto longest =
      hocket::detail::timeout_of(hocket::detail::communicator_access::state(comm), hocket::detail::settings_of(how));
  return peers<Domain>::reach(comm, stream, longest, {}, site);
}

/// Deleted: the template argument `Why` is the reason.
template <class Domain, class Given,
          auto Why = hocket::detail::why_not_options_of<hocket::detail::timeout_options, Given>()>
hocket::detail::not_understood reach_peers(const communicator<Domain>&, const stream_ref&, const Given&) = delete;

/// Deleted: the communicator must not move until the last bound call is destroyed, so a temporary can't be used.
template <class Domain, class... More>
void reach_peers(const communicator<Domain>&&, const More&...) = delete;

}  // namespace cuda
HOCKET_END_NAMESPACE
