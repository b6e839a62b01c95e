// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Deadlines. A `deadline` is the point in time at which a wait ends with an error.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/float_bits.hpp>

#include <algorithm>
#include <chrono>
#include <compare>

HOCKET_BEGIN_NAMESPACE

/// How long a call waits for its peers by default.
inline constexpr std::chrono::nanoseconds default_timeout = std::chrono::seconds(60);

namespace detail {

/// Converts to nanoseconds. A duration that is out of range becomes the nearest one in range, and a NaN the shortest, so
/// that it is refused as a negative one.
template <class Rep, class Period>
constexpr std::chrono::nanoseconds saturated(std::chrono::duration<Rep, Period> duration) noexcept {
  using approximate = std::chrono::duration<double, Period>;
  const bool is_nan = has_nan_bits(approximate(duration).count());
  if (is_nan || approximate(duration) <= approximate(std::chrono::nanoseconds::min()))
    return std::chrono::nanoseconds::min();
  if (approximate(duration) >= approximate(std::chrono::nanoseconds::max())) return std::chrono::nanoseconds::max();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(duration);
}

}  // namespace detail

/// A point in time on the monotonic clock. Saturates at the latest time of the clock: a deadline
/// `after(nanoseconds::max())` never passes.
class deadline {
 public:
  using clock = std::chrono::steady_clock;  ///< the monotonic clock

  /// A deadline that never passes.
  constexpr deadline() noexcept = default;
  /// A deadline at `when`.
  constexpr explicit deadline(clock::time_point when) noexcept : when_(when) {}

  /// Returns the deadline `duration` after `now`, or `now` if `duration` is negative.
  static deadline after(std::chrono::nanoseconds duration, clock::time_point now = clock::now()) noexcept {
    const auto longest = clock::time_point::max() - now;
    return deadline(duration >= longest ? clock::time_point::max()
                                        : now + std::max(duration, std::chrono::nanoseconds(0)));
  }

  constexpr auto operator<=>(const deadline&) const noexcept = default;

  constexpr bool never() const noexcept { return when_ == clock::time_point::max(); }  ///< true if it never passes
  /// True if it has passed.
  bool passed(clock::time_point now = clock::now()) const noexcept { return now >= when_; }
  constexpr clock::time_point when() const noexcept { return when_; }  ///< the point in time

  /// Time left before the deadline; never negative.
  std::chrono::nanoseconds left(clock::time_point now = clock::now()) const noexcept {
    return now >= when_ ? std::chrono::nanoseconds(0) : std::chrono::nanoseconds(when_ - now);
  }

 private:
  clock::time_point when_ = clock::time_point::max();
};

HOCKET_END_NAMESPACE
