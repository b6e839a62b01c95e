// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The line of progress: its rate, its remaining time, and what a terminal and a log get.
#include "support/catch.hpp"

#include <hocket/observe/console.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

namespace {

using namespace hocket::observe;
using namespace std::chrono_literals;

/// A stream whose text can be read.
class memory_stream {
 public:
  memory_stream() : stream_(::open_memstream(&text_, &size_)) { REQUIRE(stream_ != nullptr); }
  memory_stream(const memory_stream&) = delete;
  memory_stream& operator=(const memory_stream&) = delete;
  ~memory_stream() {
    std::fclose(stream_);
    std::free(text_);
  }

  std::FILE* get() const noexcept { return stream_; }
  std::string text() const {
    std::fflush(stream_);
    return {text_, size_};
  }

 private:
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* stream_;
};

const console::time_point epoch{};

}  // namespace

TEST_CASE("durations and rates are short texts") {
  using hocket::observe::detail::duration_text, hocket::observe::detail::three_digits;
  struct {
    double seconds;
    const char* text;
  } const durations[] = {{0, "0s"},         {59.9, "59s"},    {60, "1m 00s"},
                         {294, "4m 54s"},   {3605, "1h 00m"}, {86399, "23h 59m"},
                         {86400, "1d 00h"}, {1e6, "11d 13h"}, {1e300, "11574d 01h"}};
  for (const auto& each : durations) CHECK(duration_text(each.seconds) == each.text);
  CHECK(three_digits(0.104) == "0.10");
  CHECK(three_digits(2.306) == "2.31");
  CHECK(three_digits(45.67) == "45.7");
  CHECK(three_digits(12345.6) == "12346");
  CHECK(three_digits(1e300) == "many");
}

TEST_CASE("a line of progress has what is known") {
  using hocket::observe::detail::progress_line;
  CHECK(progress_line(0, 800, 0, "") == "step 0/800  0%");
  CHECK(progress_line(120, 800, 2.306, "loss 2.41") == "step 120/800  15%  2.31 steps/s  4m 54s left  loss 2.41");
  CHECK(progress_line(799, 800, 0.05, "") == "step 799/800  99%  20.0 s/step  20s left");
  CHECK(progress_line(800, 800, 2, "") == "step 800/800  100%  2.00 steps/s");
  CHECK(progress_line(7, 0, 2, "") == "step 7  2.00 steps/s");
  CHECK(progress_line(7, 0, 0, "a\nb\r\x1b[2J\x7f\u00e4") == "step 7  a b  [2J \u00e4");
}

TEST_CASE("the rate is that of the last half minute, and begins again after a rollback") {
  hocket::observe::detail::recent_rate rate;
  CHECK(rate.value() == 0);
  auto now = epoch;
  for (int step = 0; step <= 100; ++step, now += 1s) rate.add(step, now);
  CHECK(rate.value() == Approx(1));
  for (int step = 101; step <= 101 + 64 * 4; ++step, now += 250ms) rate.add(step, now);  // 64 s at four times the speed
  CHECK(rate.value() == Approx(4));
  rate.add(50, now);
  CHECK(rate.value() == 0);
  rate.add(51, now + 500ms);
  CHECK(rate.value() == Approx(2));
}

TEST_CASE("a log gets a line when one is due, and the last one") {
  const memory_stream stream;
  {
    console shown(100, {.to = stream.get()});
    for (int step = 0; step <= 50; ++step) shown.update(step, "x", epoch + step * 500ms);
    CHECK(stream.text() ==
          "step 0/100  0%  x\nstep 20/100  20%  2.00 steps/s  40s left  x\n"
          "step 40/100  40%  2.00 steps/s  30s left  x\n");
    shown.finish();
    CHECK(stream.text().ends_with("step 50/100  50%  2.00 steps/s  25s left  x\n"));
    shown.finish();
    shown.update(60, "again", epoch + 30s);
  }
  const std::string all = stream.text();
  CHECK(all.substr(all.find("step 50")) ==
        "step 50/100  50%  2.00 steps/s  25s left  x\n"
        "step 60/100  60%  2.00 steps/s  20s left  again\n");
}

TEST_CASE("a terminal gets one line that is replaced, and never longer than the terminal") {
  const memory_stream stream;
  {
    console shown(10, {.to = stream.get(), .is_terminal = true});
    shown.update(1, "a", epoch);
    shown.update(2, "b", epoch + 50ms);  // too early
    shown.update(3, "c", epoch + 200ms);
    std::string longest;
    for (int i = 0; i < 200; ++i) longest += "\u00e4";
    shown.update(4, longest, epoch + 400ms);
  }
  std::string umlauts;
  for (int i = 0; i < 79 - 40; ++i) umlauts += "\u00e4";
  const std::string last = "step 4/10  40%  7.50 steps/s  0s left  ";
  CHECK(last.size() == 39);
  CHECK(stream.text() == "\rstep 1/10  10%  a\x1b[K\rstep 3/10  30%  10.0 steps/s  0s left  c\x1b[K\r" + last +
                             umlauts + "\u00e4\x1b[K\n");
}

TEST_CASE("a console that was never updated writes nothing") {
  const memory_stream stream;
  { const console shown(10, {.to = stream.get(), .is_terminal = true}); }
  CHECK(stream.text().empty());
}
