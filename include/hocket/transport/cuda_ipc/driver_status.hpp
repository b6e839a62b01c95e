// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Converts the codes of CUDA's driver to failures with a hint on what to do. A code alone misleads: a call also
/// returns errors of work that was queued before it.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/transport/cuda_ipc/driver.hpp>
#include <hocket/transport/cuda_ipc/driver_types.hpp>

#include <string>
#include <string_view>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

inline errc code_of(status code) noexcept {
  switch (code) {
    case status::out_of_memory: return errc::out_of_memory;
    case status::map_failed:
    case status::invalid_handle:
    case status::peer_access_unsupported:
    case status::peer_access_not_enabled:
    case status::too_many_peers:
    case status::not_supported: return errc::unreachable;
    case status::not_initialized:
    case status::deinitialized:
    case status::stub_library:
    case status::call_requires_newer_driver:
    case status::device_unavailable:
    case status::no_device:
    case status::invalid_device:
    case status::device_not_licensed:
    case status::not_permitted:
    case status::system_not_ready:
    case status::system_driver_mismatch:
    case status::compat_not_supported_on_device:
    case status::mps_connection_failed:
    case status::mps_rpc_failure:
    case status::mps_server_not_ready:
    case status::mps_max_clients_reached:
    case status::mps_max_connections_reached: return errc::bad_environment;
    default: return errc::system;
  }
}

/// Returns a hint for the user.
inline std::string_view hint_for(status code) noexcept {
  switch (code) {
    case status::map_failed:
    case status::invalid_handle:
      return "; the peer may have freed the memory, or the two processes are in containers that do not share their IPC "
             "and PID namespaces";
    case status::invalid_context: return "; this thread has no device context: call cudaSetDevice in it first";
    case status::too_many_peers: return "; the device has no room for another peer: use fewer devices";
    case status::illegal_address: return "; a kernel or copy that was enqueued earlier accessed an invalid address";
    case status::out_of_memory: return "; the device's memory is full: free memory on it";
    default: return "";
  }
}

/// Returns a failure with the text "what failed: the driver's words; a hint".
template <class Driver>
failure status_failure(Driver& from, std::string_view what, status code, error_context where = {}) {
  std::string text = hocket::detail::concat({what, " failed: ", detail::words_of(from, code)});
  text += hint_for(code);
  return make_failure(code_of(code), std::move(text), where);
}

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
