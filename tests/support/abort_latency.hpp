// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Measures how soon a blocked call ends after another thread has aborted it. In each case half of the attempts must
/// end within 10 ms (100 ms under a sanitizer), and all of them within a second. Time in which the calling thread was
/// ready but had no core, on a busy machine, does not count towards the 10 ms.
///
/// HOCKET_ABORT_ROUNDS: number of attempts per case (1 if not set); from 10 on the distributions are printed.
#pragma once

#include "support/catch.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>
#include <unistd.h>

namespace hocket_test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr double sanitizer_slowdown = 10;
#else
inline constexpr double sanitizer_slowdown = 1;
#endif

inline constexpr double milliseconds_promised = 10;
inline constexpr double milliseconds_at_most = 1000;  // deadlines of these tests are far longer
inline constexpr std::size_t most_abort_rounds = 20;  // if the first ones took too long

inline std::size_t abort_rounds() {
  const char* const text = std::getenv("HOCKET_ABORT_ROUNDS");
  return text == nullptr ? 1 : static_cast<std::size_t>(std::max(1, std::atoi(text)));
}

struct latency {
  double milliseconds = 0;
  double without_core = 0;  ///< part of them in which the thread was ready, but had no core
};

/// Measures the time from an abort until the aborted call has ended.
class stopwatch {
 public:
  /// Called by the thread that is about to make the call.
  void waits() { thread_ = ::gettid(); }
  /// Called by any thread, right before it aborts.
  void start() {
    without_core_ = without_core();
    begin_ = std::chrono::steady_clock::now().time_since_epoch();
  }
  /// Called by the thread that made the call.
  latency stop() const {
    const auto end = std::chrono::steady_clock::now().time_since_epoch();
    const double all = std::chrono::duration<double, std::milli>(end - begin_.load()).count();
    return {all, std::clamp(without_core() - without_core_, 0.0, std::max(all, 0.0))};
  }

 private:
  /// Time without a core so far, in milliseconds. Zero if the kernel does not report it.
  double without_core() const {
    const std::string path = "/proc/self/task/" + std::to_string(thread_.load()) + "/schedstat";
    std::FILE* const file = std::fopen(path.c_str(), "re");
    if (file == nullptr) return 0;
    double ran = 0;
    double waited = 0;
    const int read = std::fscanf(file, "%lf %lf", &ran, &waited);
    std::fclose(file);
    return read == 2 ? waited / 1e6 : 0;
  }

  std::atomic<pid_t> thread_{0};
  std::atomic<double> without_core_{0};
  std::atomic<std::chrono::steady_clock::duration> begin_{};
};

/// The measurements of one case. Main thread only.
class abort_latency {
 public:
  explicit abort_latency(std::string name, double promised = milliseconds_promised)
      : name_(std::move(name)), promised_(promised * sanitizer_slowdown) {}

  void add(latency found) {
    all_.push_back(found.milliseconds);
    own_.push_back(found.milliseconds - found.without_core);
  }

  /// Returns whether the case should be attempted (again).
  bool wants_more() const {
    return all_.size() < abort_rounds() || (!keeps_promise() && all_.size() < most_abort_rounds);
  }
  /// Returns whether half of the attempts were within the promised time, and all within the bound.
  bool keeps_promise() const { return median(own_) < promised_ && quantile(all_, 1) < milliseconds_at_most; }

  std::string text() const {
    char text[200];
    std::snprintf(text, sizeof text, "%-58s median %5.2f  90%% %5.2f  most %5.2f ms of %zu; own median %5.2f",
                  name_.c_str(), median(all_), quantile(all_, 0.9), quantile(all_, 1), all_.size(), median(own_));
    return text;
  }

  void check() const {
    INFO(text());
    REQUIRE_FALSE(all_.empty());
    CHECK(quantile(all_, 0) >= 0);
    CHECK(median(own_) < promised_);
    CHECK(quantile(all_, 1) < milliseconds_at_most);
    if (abort_rounds() >= 10) std::printf("%s\n", text().c_str());
  }

 private:
  static double quantile(std::vector<double> values, double share) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  }
  static double median(const std::vector<double>& values) { return quantile(values, 0.5); }

  std::string name_;
  double promised_;
  std::vector<double> all_;
  std::vector<double> own_;
};

}  // namespace hocket_test
