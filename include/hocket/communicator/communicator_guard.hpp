// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// One thread's stay in a communicator, for the length of a call.
///
/// A communicator is used by one thread at a time. Programs that forget that would otherwise corrupt each other's
/// calls, now and then; so each call enters the communicator, and finds out if another thread has not left it. A copy of the
/// process that `fork` has made is never let in.
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
                      "each thread one of its own (split)");
}

inline failure no_rank() {
  return make_failure(
      errc::invalid_argument,
      "this process is a copy, by fork, of the rank that opened the communicator, and no rank itself: only "
      "that one may use it");
}

/// Why a call can't begin that `state` has not let in.
template <class State>
HOCKET_NO_INLINE failure entry_refusal(const State& state) {
  return state.in_forked_child() ? no_rank() : another_thread();
}

template <class State>
class communicator_guard {
 public:
  explicit communicator_guard(State& state) noexcept : state_(state), alone_(state.enter()) {}
  /// Waits for another thread to leave, for at most `longest`.
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

  /// Why this call can't begin; no failure if it can.
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
