// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Marks a communicator as used by one thread for the duration of a call.
///
/// A communicator may be used by one thread at a time. Two threads in it would occasionally corrupt each other's calls;
/// so each call enters the communicator and detects whether another thread is still inside. A copy of the process made
/// by `fork` is never admitted.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/cpu.hpp>

#include <chrono>

HOCKET_BEGIN_NAMESPACE
namespace detail {

inline failure another_thread() {
  return make_failure(errc::concurrent_use,
                      "another thread is in a call on this communicator: use it from one thread at a time, or give "
                      "each thread its own communicator (split)");
}

inline failure no_rank() {
  return make_failure(
      errc::invalid_argument,
      "this process is a forked copy of the rank that opened the communicator, not a rank: only the original "
      "process may use it");
}

/// Returns why `state` has refused a call.
template <class State>
HOCKET_NO_INLINE failure entry_refusal(const State& state) {
  return state.in_forked_child() ? no_rank() : another_thread();
}

template <class State>
class communicator_guard {
 public:
  explicit communicator_guard(State& state) noexcept : state_(state), alone_(state.enter()) {}
  /// Waits up to `longest` for another thread to leave.
  communicator_guard(State& state, std::chrono::nanoseconds longest) noexcept : communicator_guard(state) {
    const deadline last = deadline::after(longest);
    while (!alone_ && !state_.in_forked_child() && !last.passed()) {
      platform::yield();
      alone_ = state_.enter();
    }
  }
  communicator_guard(const communicator_guard&) = delete;
  communicator_guard& operator=(const communicator_guard&) = delete;
  ~communicator_guard() {
    if (alone_) state_.leave();
  }

  /// Returns why this call can't begin; no failure if it can.
  outcome refused() const {
    if (alone_) [[likely]]
      return {};
    return entry_refusal(state_);
  }

 private:
  State& state_;
  bool alone_;
};

}  // namespace detail
HOCKET_END_NAMESPACE
