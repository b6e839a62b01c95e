// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Waits for events on a file descriptor, within a limit.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/file_descriptor.hpp>
#include <hocket/core/platform/wait_limit.hpp>

#include <cerrno>
#include <chrono>

#include <poll.h>

HOCKET_BEGIN_NAMESPACE

namespace platform {

/// Waits until `descriptor` is ready for `events` (POLLIN, POLLOUT) or has failed.
inline failure wait_ready(int descriptor, short events, const wait_limit& limit) {
  for (;;) {
    if (limit.aborted()) return make_failure(errc::aborted, "the wait was cancelled");
    const auto slice = std::chrono::ceil<std::chrono::milliseconds>(limit.slice());
    pollfd entry{descriptor, events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(slice.count()));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return system_failure("cannot wait for a descriptor", errno);
    if (ready == 0 && limit.passed()) return make_failure(errc::timeout, "");
  }
}

}  // namespace platform

HOCKET_END_NAMESPACE
