// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Time that communication took from a rank's computation because overlap did not hide it. Each interval counts once,
/// either as exposed or as driving time.
#pragma once

#include <hocket/core/config.hpp>

#include <chrono>

HOCKET_BEGIN_NAMESPACE

/// Communication time of one rank, in seconds.
struct communication_time {
  double exposed_seconds = 0;  ///< time in which the rank only waited for other ranks
  double driving_seconds = 0;  ///< time to start and progress communication, while the computation waited

  constexpr communication_time& operator+=(const communication_time& other) noexcept {
    exposed_seconds += other.exposed_seconds;
    driving_seconds += other.driving_seconds;
    return *this;
  }
};

/// Adds the time from its construction to its destruction to a sum, in seconds. Users can add the time of their own
/// communication to that of the library.
class stopwatch {
 public:
  explicit stopwatch(double& sum) noexcept : sum_(sum) {}  ///< begins; `sum` must outlive it
  stopwatch(const stopwatch&) = delete;
  stopwatch& operator=(const stopwatch&) = delete;
  ~stopwatch() { sum_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

 private:
  double& sum_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

HOCKET_END_NAMESPACE
