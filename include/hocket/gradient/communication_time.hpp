// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How long communication kept a rank from computing: what overlap did not hide. Each moment counts once, as waiting
/// or as moving on.
#pragma once

#include <hocket/core/config.hpp>

#include <chrono>

HOCKET_BEGIN_NAMESPACE

/// Of one rank, in seconds.
struct communication_time {
  double exposed_seconds = 0;  ///< did nothing but wait for other ranks
  double driving_seconds = 0;  ///< began communication, or moved it on, while the computation waited

  constexpr communication_time& operator+=(const communication_time& other) noexcept {
    exposed_seconds += other.exposed_seconds;
    driving_seconds += other.driving_seconds;
    return *this;
  }
};

/// Adds the time from its beginning to its end to a sum, in seconds. For communication of the caller's own, to be told
/// with that of the library.
class stopwatch {
 public:
  explicit stopwatch(double& sum) noexcept : sum_(sum) {}
  stopwatch(const stopwatch&) = delete;
  stopwatch& operator=(const stopwatch&) = delete;
  ~stopwatch() { sum_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

 private:
  double& sum_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

HOCKET_END_NAMESPACE
