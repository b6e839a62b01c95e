// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A group of ranks that communicate: the first argument of every collective.
#pragma once

#include <hocket/communicator/communicator_guard.hpp>
#include <hocket/communicator/state.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/transport/concept.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE

namespace detail {

struct communicator_access;

/// Deletes the state of a communicator, except in a forked copy of the process, where closing connections and memory
/// would also affect the original process.
struct delete_unless_copied {
  template <class State>
  void operator()(State* state) const noexcept {
    if (!state->in_forked_child()) delete state;
  }
};

/// Failure of a call on a communicator that was moved from.
HOCKET_COLD inline failure used_after_move(const char* operation = nullptr, const std::source_location& site = {}) {
  return make_failure(errc::invalid_argument, "this communicator was moved from: use the one that it was moved to",
                      {.operation = operation, .site = site});
}
[[noreturn]] HOCKET_COLD inline void raise_used_after_move() { raise(used_after_move()); }

template <class Number>
  requires std::is_arithmetic_v<Number>
constexpr auto why_no_duration() {
  return make_explanation([]() -> sentence {
    return "set_timeout(...) takes a duration, for example 5s or 20ms after `using namespace std::chrono_literals`";
  });
}

}  // namespace detail

/// A group of ranks over one transport. Movable, not copyable: `split` makes a new one.
///
/// **Threads.** Use one communicator from one thread at a time: calls of a second thread fail with `concurrent_use`.
/// Different communicators of one rank may be used from different threads at the same time. `abort` may be called from
/// any thread.
/// **Failure.** The first failure of a call on any rank ends the communicator on all ranks; after that, only `shrink`
/// works.
/// **Destruction.** Local: does not wait for other ranks. Wait for all requests first.
/// **Copies.** A copy of the process made by `fork` is not a rank: its calls fail with `invalid_argument`, and
/// destroying a communicator there does not affect the original process.
/// **Once moved from** a communicator can only be assigned to and destroyed. Unless assertions are off, its calls fail
/// with `invalid_argument`; its `noexcept` members terminate the program with the same message.
template <class Domain>
class communicator {
 public:
  using domain_type = Domain;

  /// For transports: opens a communicator of `how.members` on `through`. Collective over the members.
  communicator(std::shared_ptr<Domain> through, transport::open_parameters how, std::size_t staging_bytes)
      : state_(new state_type(std::move(through), std::move(how), staging_bytes), detail::delete_unless_copied()) {}

  communicator(communicator&&) noexcept = default;
  communicator& operator=(communicator&&) noexcept = default;

  int rank() const noexcept { return state().rank(); }
  int size() const noexcept { return state().size(); }

  /// Makes the current operation, or else the next one, fail with `errc::aborted`, on this rank and then on all others.
  /// All later operations fail with `errc::revoked`. May be called from any thread. The other ranks learn of the abort
  /// when the operation fails on this rank, or when this rank destroys the communicator.
  void abort() noexcept {
    if (state_ != nullptr) state_->abort();  // nothing to abort after a move
  }
  /// Ends the communicator on all ranks with the caller's reason, for failures between two calls. On other ranks the
  /// current operation, or else the next one, fails with `errc::aborted` and "rank R reports: REASON"; on this rank the
  /// next operation fails in the same way. Without `revoke`, peers would get `peer_lost` after this rank has exited.
  /// Does nothing if the communicator has already failed. Does not wait. Throws `concurrent_use` during a call: to
  /// end a call, use `abort` from another thread, or an exception from a user-defined operation or stage.
  void revoke(std::string reason, const std::source_location& site = std::source_location::current()) const {
    const detail::communicator_guard here(state());
    if (const outcome refused = here.refused(); refused.failed()) {
      failure cause = refused.cause();
      cause.context = error_context{.operation = "revoke", .rank = rank(), .ranks = size(), .site = site};
      raise(std::move(cause));
    }
    state().revoke_undelivered(make_failure(errc::aborted, std::move(reason)));
  }
  /// True if an earlier failure has ended this communicator.
  bool revoked() const noexcept { return state().revoked(); }

  /// Default time limit of calls for which no timeout is passed; 60 s unless set. May differ between ranks.
  /// `set_timeout` throws `invalid_argument` for a negative duration.
  std::chrono::nanoseconds timeout() const noexcept { return state().timeout(); }
  /// Sets `timeout()`.
  template <class Rep, class Period>
  void set_timeout(std::chrono::duration<Rep, Period> timeout,
                   const std::source_location& site = std::source_location::current()) {
    const std::chrono::nanoseconds given = detail::saturated(timeout);
    if (given.count() < 0) {
      raise(
          detail::negative_timeout(given, {.operation = "set_timeout", .rank = rank(), .ranks = size(), .site = site}));
    }
    state().set_timeout(given);
  }
  /// Deleted: a number has no unit.
  template <class Number, auto Why = detail::why_no_duration<Number>()>
  void set_timeout(Number) = delete;

  /// Bytes that this rank has moved by its calls on this communicator, including the finished part of active calls. Any
  /// thread may call it.
  hocket::traffic traffic() const noexcept { return state().counts().moved(); }

  /// The directory to which each rank writes its flight record once this communicator has failed, for `hocket-flight`
  /// to read: see docs/when-it-fails.md. Nothing is written unless a directory is set. May differ between ranks. New
  /// communicators from `split` and `shrink` have the directory of this one.
  const std::string& flight_recorder() const noexcept { return state().recorder().directory(); }
  /// Sets `flight_recorder()`.
  void set_flight_recorder(std::string directory) { state().recorder().set_directory(std::move(directory)); }

 private:
  friend struct detail::communicator_access;
  using state_type = detail::communicator_state<Domain>;

  state_type& state() const {
    state_type* const held = state_.get();
    if (HOCKET_ASSERTION_LEVEL > 0 && held == nullptr) [[unlikely]]
      detail::raise_used_after_move();
    return *held;
  }
  /// Returns whether the communicator was moved from; always false if assertions are off.
  bool is_moved_from() const noexcept { return HOCKET_ASSERTION_LEVEL > 0 && state_ == nullptr; }

  std::shared_ptr<state_type> state_;
};

namespace detail {

/// Gives collectives access to the state of a communicator.
struct communicator_access {
  template <class Domain>
  static communicator_state<Domain>& state(const communicator<Domain>& comm) {
    return comm.state();
  }
  template <class Domain>
  static const std::shared_ptr<communicator_state<Domain>>& shared_state(const communicator<Domain>& comm) {
    static_cast<void>(comm.state());
    return comm.state_;
  }
  template <class Domain>
  static bool is_moved_from(const communicator<Domain>& comm) noexcept {
    return comm.is_moved_from();
  }
};

template <class T>
struct is_communicator : std::false_type {};
template <class Domain>
struct is_communicator<communicator<Domain>> : std::true_type {};

}  // namespace detail

HOCKET_END_NAMESPACE
