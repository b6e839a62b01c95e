// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How long a wait spins before it yields its core: learned from earlier waits of the communicator.
///
/// If each rank has a core, a wait spins, because yielding only delays it. If ranks outnumber cores, the awaited rank may
/// need this core, and then each microsecond of spinning is lost; but it may also be running on another core and answer
/// sooner than a yield returns. So a wait spins for about the time of an answer if that has helped recently, and
/// otherwise only now and then, to find out whether it would help again.
#pragma once

#include <hocket/core/config.hpp>

HOCKET_BEGIN_NAMESPACE
namespace detail {

class spinning {
 public:
  explicit spinning(bool oversubscribed) noexcept : yields_(oversubscribed) {}

  /// True if ranks outnumber cores, so that waits yield after they have spun.
  bool yields() const noexcept { return yields_; }

  /// Begins a wait. Returns the number of polls for which it should spin.
  int begin() noexcept {
    if (!yields_) return polls_on_own_core;
    const bool is_probe = ++waits_ % waits_per_probe == 0;
    return late_in_a_row_ < late_before_yielding || is_probe ? polls_of_an_answer : 0;
  }

  /// Records whether a wait has ended within the polls for which it should spin.
  void end(bool in_time) noexcept {
    if (in_time) {
      late_in_a_row_ = 0;
    } else if (late_in_a_row_ < late_before_yielding) {
      ++late_in_a_row_;
    }
  }

 private:
  static constexpr int polls_on_own_core = 1000;  ///< longer than a rank takes that is ready
  static constexpr int polls_of_an_answer = 32;   ///< 1 to 2 µs
  static constexpr unsigned waits_per_probe = 32;
  static constexpr unsigned late_before_yielding = 3;

  const bool yields_;
  unsigned waits_ = 0;
  unsigned late_in_a_row_ = 0;
};

}  // namespace detail
HOCKET_END_NAMESPACE
