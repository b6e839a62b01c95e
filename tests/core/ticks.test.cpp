// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ticks are converted to times of day that agree with the clock.
#include "support/catch.hpp"

#include <hocket/core/platform/ticks.hpp>

#include <chrono>
#include <cstdint>
#include <thread>

namespace platform = hocket::platform;
using namespace std::chrono_literals;

namespace {

std::int64_t today() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

TEST_CASE("a time in ticks lies between the clock readings before and after it") {
  const platform::tick_mark begin = platform::tick_mark::now();
  std::this_thread::sleep_for(20ms);
  const std::int64_t before = today();
  const std::uint64_t now_in_ticks = platform::ticks();
  const std::int64_t after = today();
  std::this_thread::sleep_for(20ms);
  const platform::tick_calendar calendar(begin);
  const std::int64_t tolerance = 5'000'000;  // a thread may lose its core between two readings, and clocks may be set
  CHECK(calendar.at(now_in_ticks) > before - tolerance);
  CHECK(calendar.at(now_in_ticks) < after + tolerance);
  CHECK(calendar.at(begin.ticks) < calendar.at(now_in_ticks));
  CHECK(calendar.at(now_in_ticks) < calendar.now());
  CHECK(calendar.now() - calendar.at(begin.ticks) > 35'000'000);
}

TEST_CASE("a calendar that begins now does not divide by zero") {
  const platform::tick_mark begin = platform::tick_mark::now();
  const platform::tick_calendar calendar(begin);
  CHECK(calendar.at(begin.ticks) <= calendar.now());
}
