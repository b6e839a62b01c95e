// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Checks for ranks that are threads on one device and share its context and its connections. Streams that share a
/// connection block each other: a wait of one, for a signal of the other, never ends. Lazy loading of a kernel at its
/// first launch also blocks: it waits for all streams of the context. Both are refused before any rank waits.
///
/// Threads that enqueue the first work on their streams at the same time may get one connection for two streams, even
/// if others are free. So they take turns, and a group's stream has run its first work before any rank waits on one.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/transport/cuda_ipc/driver_status.hpp>
#include <hocket/transport/cuda_ipc/driver_types.hpp>

#include <cstdlib>
#include <mutex>
#include <string>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

namespace detail {

/// Returns the number of streams of a process that can run concurrently on a device.
inline int connections_to_a_device() {
  const char* const value = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const int configured = value == nullptr ? 0 : std::atoi(value);
  return configured > 0 ? configured : 8;
}

/// Returns the mutex to hold while a rank enqueues an operation. One per process, because connections are per process.
inline std::mutex& turns_of_threads() {
  static std::mutex one;
  return one;
}

}  // namespace detail

/// Returns why `ranks` ranks of this process can't wait for each other on one device; no failure if they can.
/// `connections`: 0 for the number in the environment.
template <class Driver>
failure check_shared_device(Driver& through, int ranks, int connections) {
  auto loading = loading_mode::eager;
  const status returned = through.module_get_loading_mode(&loading);
  if (returned != status::success)
    return status_failure(through, "asking the driver whether it loads kernels lazily", returned);
  const std::string these = hocket::detail::concat({ranks, " ranks of one process use one device, "});
  if (loading == loading_mode::lazy) {
    return make_failure(errc::bad_environment,
                        these +
                            "and the first launch of each kernel waits there until all streams are idle, including "
                            "those that wait for the launching rank: set CUDA_MODULE_LOADING=EAGER before the process "
                            "uses CUDA");
  }
  const int room = connections > 0 ? connections : detail::connections_to_a_device();
  if (2 * ranks <= room) return {};
  return make_failure(
      errc::bad_environment,
      hocket::detail::concat(
          {these, "which has ", room,
           " connections for its streams: set CUDA_DEVICE_MAX_CONNECTIONS=32 before the process uses CUDA"}));
}

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
