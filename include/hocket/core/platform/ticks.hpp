// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Times that are taken often and read rarely. Reading the processor's counter costs a third of reading the clock, and
/// ticks are converted to a time of day only on request.
///
/// The counters of all cores run evenly and in step on the processors of this century that Linux trusts for its own
/// clock. On other processors, times are wrong, and nothing else is affected.
#pragma once

#include <hocket/core/config.hpp>

#include <chrono>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace platform {

/// Returns the counter, which counts up at a fixed but unspecified rate.
inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

/// A point in time on both the counter and the monotonic clock. Two marks give the rate of the counter.
struct tick_mark {
  std::uint64_t ticks = 0;
  std::int64_t nanoseconds = 0;

  static tick_mark now() noexcept {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return {platform::ticks(), std::chrono::duration_cast<std::chrono::nanoseconds>(since).count()};
  }
};

/// Converts ticks to nanoseconds since 1970. Exact to some tens of nanoseconds between `begin` and now.
class tick_calendar {
 public:
  explicit tick_calendar(const tick_mark& begin) noexcept
      : now_(tick_mark::now()),
        today_(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
                   .count()) {
    const auto ticks = static_cast<double>(now_.ticks - begin.ticks);
    if (now_.ticks > begin.ticks) length_ = static_cast<double>(now_.nanoseconds - begin.nanoseconds) / ticks;
  }

  std::int64_t now() const noexcept { return today_; }
  std::int64_t at(std::uint64_t ticks) const noexcept {
    const auto ago = static_cast<double>(static_cast<std::int64_t>(now_.ticks - ticks));
    return today_ - static_cast<std::int64_t>(ago * length_);
  }

 private:
  tick_mark now_;
  std::int64_t today_;
  double length_ = 1;  ///< duration of a tick, in nanoseconds
};

}  // namespace platform
HOCKET_END_NAMESPACE
