// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Sleeping on a word of memory, which another process may map, until it changes.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/cpu.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdint>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

HOCKET_BEGIN_NAMESPACE
namespace platform {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

/// Sleeps while `word` has `value`, until `wake` is called for it or `longest` is over; may return earlier. If the
/// kernel refuses that, sleeps for a moment.
inline void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                        std::chrono::nanoseconds longest) noexcept {
  const timespec limit{static_cast<time_t>(longest.count() / 1'000'000'000), longest.count() % 1'000'000'000};
  const long result = ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
  if (result != 0 && (errno == ENOSYS || errno == EPERM)) nap(50'000);
}

/// Wakes all that sleep on `word`.
inline void wake(std::atomic<std::uint32_t>& word) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace platform
HOCKET_END_NAMESPACE
