// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which process memory belongs to. A process can't open its own handles, so ranks that are threads of one process must
/// know that they are; and a process number alone may be in use again, or mean another process in another container.
#pragma once

#include <hocket/bootstrap/process_identity.hpp>
#include <hocket/core/checksum.hpp>
#include <hocket/core/config.hpp>

#include <compare>
#include <cstdint>
#include <span>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

/// Small enough to travel with every handle.
struct process_mark {
  std::uint64_t host = 0;           ///< differs between hosts, and between two boots of one
  std::uint64_t pid_namespace = 0;  ///< 0: not known
  std::uint64_t start_time = 0;     ///< 0: not known
  std::int32_t pid = 0;

  friend auto operator<=>(const process_mark&, const process_mark&) = default;
  friend bool operator==(const process_mark&, const process_mark&) = default;  // implied, but not to nvcc

  /// Whether `other` is this process for certain. What is not known is taken for two processes: that costs a copy, and
  /// the opposite would be a pointer to nowhere.
  bool same_process(const process_mark& other) const noexcept {
    return *this == other && pid_namespace != 0 && start_time != 0;
  }
};

/// Reads /proc: once per wire, not per call.
inline process_mark own_mark() {
  const bootstrap::process_identity own = bootstrap::own_identity();
  return {hocket::detail::checksum(std::as_bytes(std::span(own.host))), own.pid_namespace, own.start_time, own.pid};
}

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
