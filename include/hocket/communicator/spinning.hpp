// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Decides whether a wait spins, yields its core or sleeps, from how long earlier waits of the communicator took.
///
/// If each rank has a core, a wait spins, because yielding only delays it. If ranks outnumber cores, the awaited rank may
/// need this core, and then each microsecond of spinning is lost; but it may also be running on another core and answer
/// sooner than a yield returns. So a wait spins for about the time of an answer if that has helped recently, and
/// otherwise only now and then, to find out whether it would help again.
///
/// Two yields in a row that take longer than the ranks of a core need show that another program uses the core for whole
/// time slices. Sleeping is better then, because the kernel soon gives the core to a rank that is woken. Now and then a
/// wait yields, to find out whether that is still so.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/cpu.hpp>

#include <algorithm>
#include <chrono>

HOCKET_BEGIN_NAMESPACE
namespace detail {

class spinning {
 public:
  /// `can_sleep`: whether peers wake this rank.
  spinning(int ranks_per_core, bool can_sleep) noexcept
      : yields_(ranks_per_core > 1), can_sleep_(can_sleep),
        longest_yield_to_ranks_(std::max(least_long_yield, ranks_per_core * turn_of_a_rank)) {}

  /// True if ranks outnumber cores, so that waits yield after they have spun.
  bool yields() const noexcept { return yields_; }

  /// Begins a wait. Returns the number of polls for which it should spin.
  int begin() noexcept {
    ++waits_;
    if (!yields_) return polls_on_own_core;
    return late_in_a_row_ < late_before_yielding || waits_ % waits_per_probe == 0 ? polls_of_an_answer : 0;
  }

  /// Records whether a wait has ended within the polls for which it should spin.
  void end(bool in_time) noexcept {
    if (in_time) {
      late_in_a_row_ = 0;
    } else if (late_in_a_row_ < late_before_yielding) {
      ++late_in_a_row_;
    }
  }

  /// True if the last yields took long.
  bool is_contended() const noexcept { return long_yields_ == long_yields_before_sleeping; }

  /// True if a wait should sleep instead of yielding.
  bool prefers_sleep() const noexcept { return can_sleep_ && is_contended() && waits_ % waits_per_yield != 0; }

  /// Yields the core.
  void yield() noexcept {
    const auto begin = std::chrono::steady_clock::now();
    platform::yield();
    const bool was_long = std::chrono::steady_clock::now() - begin > longest_yield_to_ranks_;
    long_yields_ = was_long ? std::min(long_yields_ + 1, long_yields_before_sleeping) : 0;
  }

 private:
  static constexpr int polls_on_own_core = 1000;  ///< longer than a rank takes that is ready
  static constexpr int polls_of_an_answer = 32;   ///< 1 to 2 µs
  static constexpr unsigned waits_per_probe = 32;
  static constexpr unsigned waits_per_yield = 128;
  static constexpr unsigned late_before_yielding = 3;
  static constexpr unsigned long_yields_before_sleeping = 2;  ///< one may be due to a rank that computes or starts
  static constexpr std::chrono::microseconds least_long_yield{200}, turn_of_a_rank{100};

  const bool yields_;
  const bool can_sleep_;
  const std::chrono::microseconds longest_yield_to_ranks_;
  unsigned long_yields_ = 0;  ///< in a row
  unsigned waits_ = 0;
  unsigned late_in_a_row_ = 0;
};

}  // namespace detail
HOCKET_END_NAMESPACE
