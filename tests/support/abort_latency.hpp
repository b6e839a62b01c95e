// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How soon a blocked call ends after another thread has called it off. On a quiet machine that is below 10 ms; where
/// threads outnumber the cores or a sanitizer takes its time it may be more, so tests assert less, and warn.
///
/// HOCKET_ABORT_ROUNDS: how often each case is tried (2 if it is not set); from 10 on the distributions are printed.
#pragma once

#include "support/catch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace hocket_test {

inline constexpr double milliseconds_promised = 10;
inline constexpr double milliseconds_asserted = 1000;  // deadlines of these tests are far longer
inline constexpr double milliseconds_at_best = 100;    // what waits for a peer takes longer each time

inline int abort_rounds() {
  const char* const text = std::getenv("HOCKET_ABORT_ROUNDS");
  return text == nullptr ? 2 : std::max(1, std::atoi(text));
}

/// What was measured in one case. Main thread only.
class abort_latency {
 public:
  explicit abort_latency(std::string name, double promised = milliseconds_promised)
      : name_(std::move(name)), promised_(promised) {}

  void add(double milliseconds) { all_.push_back(milliseconds); }

  void check() {
    INFO(name_);
    REQUIRE_FALSE(all_.empty());
    std::sort(all_.begin(), all_.end());
    CHECK(all_.front() >= 0);
    CHECK(all_.front() < milliseconds_at_best);
    CHECK(all_.back() < milliseconds_asserted);
    if (all_.size() >= 10) {
      std::printf("%-58s median %5.2f  90%% %5.2f  most %5.2f ms of %zu\n", name_.c_str(), all_[all_.size() / 2],
                  all_[all_.size() * 9 / 10], all_.back(), all_.size());
    } else if (all_.back() >= promised_) {
      WARN(name_ << ": ended after " << all_.back() << " ms");
    }
  }

 private:
  std::string name_;
  double promised_;
  std::vector<double> all_;
};

}  // namespace hocket_test
