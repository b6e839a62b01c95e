// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How long a blocking call may wait for the operating system, and what may end the wait sooner.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>

#include <time.h>

HOCKET_BEGIN_NAMESPACE

/// A deadline, and a predicate or stop token that indicates whether the wait was cancelled. Owns neither: they must
/// outlive the call that the limit is passed to. The waiting thread checks them about every 2 ms.
class wait_limit {
 public:
  /// Longest time that a wait may continue after it was cancelled.
  static constexpr std::chrono::nanoseconds longest_slice = std::chrono::milliseconds(2);

  /// Waits until `until`, and can't be cancelled.
  wait_limit(deadline until) noexcept : until_(until) {}

  /// Waits until `until` or until `cancelled()` is true.
  template <typename Predicate>
    requires std::is_invocable_r_v<bool, const Predicate&>
  wait_limit(deadline until, const Predicate& cancelled) noexcept
      : until_(until), object_(&cancelled),
        ask_([](const void* object) -> bool { return (*static_cast<const Predicate*>(object))(); }) {}

  /// Waits until `until` or until a stop is requested of `token`, a `std::stop_token`.
  template <typename Token>
    requires requires(const Token& token) {
      { token.stop_requested() } -> std::convertible_to<bool>;
      { token.stop_possible() } -> std::convertible_to<bool>;
    }
  wait_limit(deadline until, const Token& token) noexcept : until_(until) {
    if (!token.stop_possible()) return;
    object_ = &token;
    ask_ = [](const void* object) -> bool { return static_cast<const Token*>(object)->stop_requested(); };
  }

  deadline until() const noexcept { return until_; }
  bool passed() const noexcept { return until_.passed(); }
  bool aborted() const { return ask_ != nullptr && ask_(object_); }

  /// Returns this limit, `extra` later: for answers of a peer that has the same deadline.
  wait_limit later_by(std::chrono::nanoseconds extra) const noexcept {
    wait_limit result = *this;
    if (!until_.never()) result.until_ = deadline::after(extra, until_.when());
    return result;
  }

  /// Returns this limit, but at most `most` from now.
  wait_limit at_most(std::chrono::nanoseconds most) const noexcept {
    wait_limit result = *this;
    result.until_ = deadline(std::min(until_.when(), deadline::after(most).when()));
    return result;
  }

  /// Returns how long to sleep before the next check: until the deadline, or briefly if the wait can be cancelled.
  std::chrono::nanoseconds slice(std::chrono::nanoseconds most = std::chrono::hours(1)) const noexcept {
    if (ask_ != nullptr) most = std::min(most, longest_slice);
    return std::min(most, until_.left());
  }

 private:
  deadline until_;
  const void* object_ = nullptr;
  bool (*ask_)(const void*) = nullptr;
};

namespace platform {

/// Returns a duration as text: "10 s", "1.5 s", "0.25 s".
inline std::string seconds_text(std::chrono::nanoseconds duration) {
  const std::int64_t exact = (duration.count() + 500000) / 1000000;
  const std::int64_t unit = exact >= 990 ? 100 : exact >= 99 ? 10 : 1;
  const std::int64_t milliseconds = (exact + unit / 2) / unit * unit;
  std::string text = std::to_string(milliseconds / 1000);
  std::string fraction = std::to_string(1000 + milliseconds % 1000).substr(1);
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
  if (!fraction.empty()) text += '.' + fraction;
  return text + " s";
}

/// Sleeps for `duration`. Fails if `limit` ends before that.
inline failure nap(std::chrono::nanoseconds duration, const wait_limit& limit) {
  const deadline awake = deadline::after(duration);
  do {
    if (limit.aborted()) return make_failure(errc::aborted, "the wait was cancelled");
    if (limit.passed()) return make_failure(errc::timeout, "");
    const std::int64_t count = std::min(limit.slice(), awake.left()).count();
    timespec time{};
    time.tv_sec = static_cast<time_t>(count / 1000000000);
    time.tv_nsec = static_cast<long>(count % 1000000000);
    ::nanosleep(&time, nullptr);
  } while (!awake.passed());
  return {};
}

}  // namespace platform

HOCKET_END_NAMESPACE
