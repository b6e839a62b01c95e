// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/core/deadline.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>
#include <thread>

#include "support/catch.hpp"

using namespace std::chrono_literals;
using hocket::deadline;
using moment = deadline::clock::time_point;

namespace {

constexpr moment epoch{};
constexpr moment somewhen = epoch + 1000h;

}  // namespace

TEST_CASE("a deadline that was not set never passes") {
  constexpr deadline never;
  STATIC_REQUIRE(never.never());
  CHECK_FALSE(never.passed());
  CHECK_FALSE(never.passed(moment::max() - 1ns));
  CHECK(never.left(somewhen) > 24h * 365 * 100);
}

TEST_CASE("durations are converted to the nearest one in nanoseconds, and a NaN to the shortest") {
  using hocket::detail::saturated;
  using seconds = std::chrono::duration<double>;
  using days = std::chrono::duration<std::int64_t, std::ratio<86400>>;
  constexpr auto longest = std::chrono::nanoseconds::max(), shortest = std::chrono::nanoseconds::min();
  STATIC_REQUIRE(saturated(seconds(std::numeric_limits<double>::quiet_NaN())) == shortest);
  STATIC_REQUIRE(saturated(std::chrono::duration<float>(-std::numeric_limits<float>::quiet_NaN())) == shortest);
  STATIC_REQUIRE(saturated(seconds(std::numeric_limits<double>::infinity())) == longest);
  STATIC_REQUIRE(saturated(seconds(-std::numeric_limits<double>::max())) == shortest);
  STATIC_REQUIRE(saturated(days::max()) == longest);
  STATIC_REQUIRE(saturated(days::min()) == shortest);
  STATIC_REQUIRE(saturated(longest) == longest);
  STATIC_REQUIRE(saturated(seconds(1.5)) == 1500ms);
}

TEST_CASE("a deadline has passed from its point in time on, and not one nanosecond earlier") {
  const auto limit = deadline::after(5ms, somewhen);
  CHECK(limit.when() == somewhen + 5ms);
  CHECK_FALSE(limit.never());
  CHECK_FALSE(limit.passed(somewhen));
  CHECK_FALSE(limit.passed(somewhen + 5ms - 1ns));
  CHECK(limit.passed(somewhen + 5ms));
  CHECK(limit.passed(somewhen + 1h));
}

TEST_CASE("the time left and the elapsed time add up to the duration, until no time is left") {
  for (const auto duration : {0ns, 1ns, 999ns, std::chrono::nanoseconds(2s)}) {
    const auto limit = deadline::after(duration, somewhen);
    for (const auto gone : {0ns, 1ns, 500ns, std::chrono::nanoseconds(1s), std::chrono::nanoseconds(3s)}) {
      CHECK(limit.left(somewhen + gone) == std::max(duration - gone, 0ns));
      CHECK((limit.left(somewhen + gone) == 0ns) == limit.passed(somewhen + gone));
    }
  }
}

TEST_CASE("durations too long for the clock saturate instead of wrapping into the past") {
  for (const auto now : {epoch, somewhen, moment::max() - 1h, moment::max()}) {
    const auto limit = deadline::after(std::chrono::nanoseconds::max(), now);
    CHECK(limit.never());
    CHECK(limit.left(now) >= 0ns);
  }
  CHECK(deadline::after(2h, moment::max() - 1h).never());
  CHECK_FALSE(deadline::after(1h - 1ns, moment::max() - 1h).never());
}

TEST_CASE("a negative duration gives a deadline that has just passed") {
  for (const auto duration : {-1ns, std::chrono::nanoseconds(-1h), std::chrono::nanoseconds::min()}) {
    const auto limit = deadline::after(duration, somewhen);
    CHECK(limit.when() == somewhen);
    CHECK(limit.passed(somewhen));
    CHECK(limit.left(somewhen) == 0ns);
  }
}

TEST_CASE("by default a deadline reads the monotonic clock") {
  const auto before = deadline::clock::now();
  const auto limit = deadline::after(20ms);
  CHECK(limit.when() >= before + 20ms);
  CHECK(limit.left() <= 20ms);
  while (!limit.passed()) std::this_thread::sleep_for(1ms);
  CHECK(deadline::clock::now() >= before + 20ms);
  CHECK(limit.left() == 0ns);
}
