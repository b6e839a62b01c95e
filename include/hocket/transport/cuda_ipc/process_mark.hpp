// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Identifies the process that owns memory. A process can't open its own handles, so ranks must know whether they are
/// threads of one process; a process number alone may be reused, or mean another process in another container.
#pragma once

#include <hocket/bootstrap/process_identity.hpp>
#include <hocket/core/checksum.hpp>
#include <hocket/core/config.hpp>

#include <compare>
#include <cstdint>
#include <span>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

/// Process identity that is small enough to be part of every handle.
struct process_mark {
  std::uint64_t host = 0;        ///< differs between hosts, and between two boots of one
  std::uint64_t namespaces = 0;  ///< those in which `pid` and `start_time` are valid; 0: not known
  std::uint64_t start_time = 0;  ///< 0: not known
  std::int32_t pid = 0;

  friend auto operator<=>(const process_mark&, const process_mark&) = default;
  friend bool operator==(const process_mark&, const process_mark&) = default;  // implied, but not to nvcc

  /// True if `other` is certainly this process. If that is not known, they count as two processes: that costs a copy,
  /// while the opposite error would be an invalid pointer.
  bool same_process(const process_mark& other) const noexcept {
    return *this == other && namespaces != 0 && start_time != 0;
  }
};

/// Returns the mark of this process. Reads /proc: call once per domain, not per call.
inline process_mark own_mark() {
  const bootstrap::process_identity own = bootstrap::own_identity();
  const std::uint64_t both[] = {own.pid_namespace, own.time_namespace};
  return {hocket::detail::checksum(std::as_bytes(std::span(own.host))),
          own.pid_namespace == 0 ? 0 : hocket::detail::checksum(std::as_bytes(std::span(both))), own.start_time,
          own.pid};
}

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
