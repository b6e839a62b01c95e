// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The progress loop: advances an operation until it is complete, but no longer than its deadline.
///
/// The checks are free on the fast path. The clock is read only after 256 polls without progress, and the abort and
/// stop flags only every 64 polls; a call whose peers are ready pays for none of them.
#pragma once

#include <hocket/communicator/spinning.hpp>
#include <hocket/communicator/state.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/function_view.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/core/text.hpp>
#include <hocket/engine/active_calls.hpp>
#include <hocket/engine/call_site.hpp>
#include <hocket/engine/failure_diagnosis.hpp>
#include <hocket/engine/machine.hpp>
#include <hocket/engine/operation.hpp>
#include <hocket/transport/concept.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Adds the position of an operation to the context of an error.
using locator = function_view<void(error_context&)>;

/// Counts polls without progress, yields the core when ranks outnumber cores, and reports when the deadline has passed.
class wait_policy {
 public:
  static constexpr unsigned polls_per_check = 64;
  static constexpr unsigned polls_until_armed = 256;
  static constexpr unsigned polls_per_yield = 1024;   ///< if each rank has a core: to find out whether it still has
  static constexpr unsigned yields_until_sleep = 64;  ///< if ranks outnumber cores
  static constexpr unsigned polls_until_sleep = 1U << 14;  ///< otherwise; about a millisecond
  static constexpr unsigned polls_until_nap = 1U << 16;

  wait_policy(std::chrono::nanoseconds timeout, spinning& spin) noexcept : timeout_(timeout), spin_(spin) {}

  void progressed() noexcept {
    if (polls_ > 0 && polls_ <= spins_) spin_.end(true);
    polls_ = 0;
    gone_ = -1;
  }

  /// Call after a poll without progress. Returns true when flags and clock are due to be checked.
  bool tick() noexcept {
    if (polls_ == 0) spins_ = static_cast<unsigned>(spin_.begin());
    ++polls_;
    bool is_due = polls_ % polls_per_check == 0;
    if (spin_.yields() && polls_ > spins_) {
      if (polls_ == spins_ + 1) spin_.end(false);
      if (!should_sleep()) spin_.yield();  // on each poll, because the awaited rank may need this core
      is_due = polls_ % 2 == 0;            // because a yield may take a time slice of some ms
      if (spin_.is_contended()) polls_ = std::max(polls_, polls_until_armed);
    } else {
      platform::pause();
      if (polls_ % polls_per_yield == 0 && polls_ < polls_until_nap) spin_.yield();
    }
    if (!is_due) return false;
    waited_long_ = true;
    if (polls_ >= polls_until_nap) platform::nap(50'000);
    return true;
  }

  /// Returns whether the wait should sleep if that is possible.
  bool should_sleep() const noexcept {
    if (polls_ > spins_ && spin_.prefers_sleep()) return true;
    return polls_ >= (spin_.yields() ? spins_ + yields_until_sleep : polls_until_sleep);
  }

  /// For a wait that should sleep and can't.
  void yield() noexcept { spin_.yield(); }
  /// Call it if what the rank waits for wakes no rank.
  void yield_instead_of_sleep() noexcept {
    if (should_sleep()) yield();
  }

  /// Records that the rank has slept for some ms without effect, or was woken: checks are due soon, and it need not nap.
  void slept() noexcept { polls_ = std::clamp(polls_, polls_until_armed, polls_until_nap - 2 * polls_per_check); }

  /// True once the wait has taken some microseconds.
  bool has_waited_long() const noexcept { return waited_long_; }

  bool expired() noexcept { return armed() ? until_.passed() : false; }

  /// Time left before the call's deadline.
  std::chrono::nanoseconds left() const noexcept {
    return armed_ ? std::max(until_.when() - deadline::clock::now(), deadline::clock::duration(0)) : timeout_;
  }

  /// Returns whether waiting for `peer`, which `has_left`, is futile because it left long ago. Messages that it sent
  /// before may still be in transit, and this rank may have slept, so true only at the second check after 200 ms.
  bool is_futile(int peer, bool has_left) noexcept {
    if (!has_left) peer = -1;
    if (std::exchange(gone_, peer) != peer) {
      futile_after_ = deadline::after(std::chrono::milliseconds(200));
      late_ = false;
    }
    return peer >= 0 && std::exchange(late_, futile_after_.passed());
  }

  /// Returns true when a wait has become long, and then at increasing intervals: compare calls with the peer now. Asks
  /// `peer` at most twice: unread inquiries fill its mailbox, which must have room for the message that ends this call.
  bool should_inquire(int peer) noexcept {
    const auto now = deadline::clock::now();
    if (!armed() || !inquiry_due_.passed(now)) return false;
    inquiry_due_ = deadline::after(inquiry_interval_, now);
    inquiry_interval_ *= 2;
    if (std::exchange(asked_, peer) != peer) times_asked_ = 0;
    return times_asked_++ < 2;
  }

 private:
  /// Whether the clock runs; starts it after enough polls.
  bool armed() noexcept {
    if (polls_ < polls_until_armed) return false;
    if (!armed_) {
      const auto now = deadline::clock::now();
      until_ = deadline::after(timeout_, now);
      inquiry_due_ = deadline::after(inquiry_interval_, now);
      armed_ = true;
    }
    return true;
  }

  const std::chrono::nanoseconds timeout_;
  spinning& spin_;
  unsigned spins_ = 0;  ///< polls of this wait before it yields
  bool armed_ = false;
  bool waited_long_ = false;
  unsigned polls_ = 0;
  deadline until_;
  deadline inquiry_due_;
  std::chrono::nanoseconds inquiry_interval_ = std::chrono::milliseconds(1);
  int asked_ = -1;
  unsigned times_asked_ = 0;
  int gone_ = -1;  ///< the awaited rank, if it had left at the last check
  bool late_ = false;
  deadline futile_after_;
};

inline std::string describe(std::chrono::nanoseconds duration) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  if (milliseconds % 1000 == 0) return concat({milliseconds / 1000, " s"});
  return concat({milliseconds, " ms"});
}

/// Ends a failed call: revokes the communicator, unless the call fails because it was revoked, and writes the flight
/// record. Call only from the thread that has entered the communicator.
template <class State>
HOCKET_COLD failure end_failed_call(State& state, failure cause, const call_site& call, locator locate) {
  cause = in_context(std::move(cause), state, call);
  state.revoke(cause);
  error_context at;
  locate(at);
  record_failure(state, cause, &at);
  return cause;
}

/// Ends a call that could not begin.
template <class State>
HOCKET_COLD failure refuse(State& state, failure cause, const call_site& call) {
  cause = in_context(std::move(cause), state, call);
  record_failure(state, cause);
  return cause;
}

#if HOCKET_HAS_EXCEPTIONS
/// Ends a call that ran out of memory. If there is no memory to notify peers either, they learn of the failure when
/// this rank leaves.
template <class State>
HOCKET_COLD failure end_without_memory(State& state, const std::bad_alloc& thrown, const call_site& call,
                                       locator locate) noexcept {
  failure cause = left_by_bad_alloc(thrown);
  error_context at;
  locate(at);
  cause.context.sequence = at.sequence;
  cause.context.lane = at.lane;
  cause.context.step = at.step;
  try {
    return end_failed_call(state, std::move(cause), call, locate);
  } catch (...) {
    failure wordless{make_error_code(errc::out_of_memory), {}, {}};
    try {
      state.revoke(wordless);  // peers may read the call's memory until they are notified
    } catch (...) {}
    return wordless;
  }
}
#endif

/// Returns the outcome of `body()`, or `out_of_memory` if an allocation failed in it.
template <class State, class Body>
outcome if_memory_lasts([[maybe_unused]] State& state, [[maybe_unused]] const call_site& call,
                        [[maybe_unused]] locator locate, Body body) {
#if HOCKET_HAS_EXCEPTIONS
  try {
    return body();
  } catch (const std::bad_alloc& thrown) {
    return end_without_memory(state, thrown, call, locate);
  }
#else
  return body();
#endif
}

/// Locates a call that may not be numbered yet: sets the sequence number that the next operation gets.
template <class State>
auto next_number(const State& state) noexcept {
  return [number = state.last_sequence() + 1](error_context& at) { at.sequence = number; };
}

/// Returns the position of a call.
inline waiting_call position_of(const call_site& call, locator locate) {
  error_context at;
  locate(at);
  return {call.operation, call.site, static_cast<std::uint32_t>(at.sequence), at.peer};
}

/// Returns the failure of a call that was cancelled by `abort` or its stop token.
template <class State>
HOCKET_COLD failure reason_to_stop(State& state) {
  return state.aborted() ? state.consume_abort()
                         : make_failure(errc::aborted, "the stop token of this call was triggered");
}

/// Returns why the wait must end now; no failure if it continues. `locate(context)` adds the operation's position.
template <class State>
HOCKET_NO_INLINE failure reason_to_end(State& state, stop_query stop, wait_policy& waiting, const call_site& call,
                                       locator locate) {
  const auto where = [&] { return position_of(call, locate); };
  const auto cancelled = [&] { return state.aborted() || stop(); };
  // Checked before control messages are read: a failing peer sends its reason, which says more, before it leaves.
  failure broken;
  if (!cancelled()) state.endpoints().broken(broken);
  const outcome compared = poll_control_messages(state, where);
  failure cause;
  if (state.flagged() && !state.revoked()) await_revocation_reason(state, where, waiting.left(), cancelled);
  if (state.revoked()) {
    cause = state.consume_cause();
  } else if (compared.failed()) {
    cause = compared.cause();
  } else if (cancelled()) {
    cause = reason_to_stop(state);
  } else if (broken) {
    cause = std::move(broken);
  } else if (waiting.expired()) {
    failure late = make_failure(errc::timeout, concat({"waited ", describe(call.timeout), " for a peer"}));
    cause = find_culprit(state, where, call.timeout, std::move(late), cancelled);
    if (cause.code == errc::timeout && cancelled()) cause = reason_to_stop(state);
  } else {
    const waiting_call own = where();
    const bool has_left = own.awaited >= 0 && own.awaited != state.rank() && state.endpoints().gone(own.awaited);
    if (!waiting.is_futile(own.awaited, has_left)) {
      if (waiting.should_inquire(own.awaited)) inquire(state, own);
      return {};
    }
    const std::string why_it_left = transport::departure_reason(state.endpoints(), own.awaited);
    cause =
        make_failure(errc::peer_lost, concat({"rank ", own.awaited, " is gone: ", why_it_left}), {.peer = own.awaited});
  }
  const int culprit = cause.context.peer;
  locate(cause.context);
  if (culprit >= 0) cause.context.peer = culprit;
  return cause;
}

/// Failure of a call that was complete when a peer failed: data that it read from the peer's buffers may be invalid.
inline failure invalidated_by_peer() {
  return make_failure(errc::revoked, "a peer's call failed while this one read its buffers");
}

/// Returns the failure of a call with what its peers report about it.
template <class State>
HOCKET_COLD failure examined(State& state, stop_query stop, const call_site& call, locator locate, failure cause) {
  const auto where = [&] { return position_of(call, locate); };
  if (cause.code == errc::peer_lost) {
    // The peer may have ended because of a failure whose report this rank has not read yet.
    static_cast<void>(poll_control_messages(state, where));
    return state.revoked() ? state.cause() : cause;
  }
  const auto cancelled = [&] { return state.aborted() || stop(); };
  const bool differs = cause.code == errc::mismatch || cause.code == errc::truncated;
  if (differs && cause.context.sequence == 0 && cause.context.peer >= 0) {
    const message_record* const own = state.calls().last_message([&](const message_record& each) {
      return each.from == cause.context.peer && each.site.line() == call.site.line();
    });
    if (own == nullptr) return cause;
    const question wanted{question::subject::message, own->tag};
    return with_call_of_sender(state, wanted, where, std::move(cause), cancelled);
  }
  if (cause.code != errc::mismatch || cause.context.sequence == 0) return cause;
  const error_context found_at = cause.context;
  cause = with_both_calls(state, where, std::move(cause), cancelled);
  cause.context.sequence = found_at.sequence;
  cause.context.lane = found_at.lane;
  cause.context.step = found_at.step;
  return cause;
}

template <class State>
failure examined(State& state, const operation& operation_state, stop_query stop, const call_site& call,
                 locator locate) {
  if (!operation_state.has_full_cause()) return examined(state, stop, call, locate, operation_state.cause());
  if (operation_state.cause().code != errc::mismatch || operation_state.cause().context.sequence == 0)
    return operation_state.cause();
  const auto where = [&] { return position_of(call, locate); };
  const question wanted{question::subject::call, static_cast<std::uint32_t>(operation_state.cause().context.sequence)};
  return with_call_of_sender(state, wanted, where, operation_state.cause(), [&] { return state.aborted() || stop(); });
}

/// Replaces the reason of a timeout if the operation waited for something other than a peer.
template <class State>
HOCKET_COLD failure with_overdue_reason(const State& state, const operation& operation_state, failure cause) {
  if (cause.code != errc::timeout || cause.context.peer >= 0 || state.revoked()) return cause;
  failure own = operation_state.overdue();
  if (own) cause.reason = std::move(own.reason);
  return cause;
}

/// Returns why an operation has failed. A peer's failure that invalidated its result takes precedence.
template <class State>
HOCKET_COLD failure reason_of_failure(State& state, const operation& operation_state, stop_query stop,
                                      wait_policy& waiting, const call_site& call, locator locate) {
  if (!operation_state.discarded()) return examined(state, operation_state, stop, call, locate);
  failure why = reason_to_end(state, stop, waiting, call, locate);
  return why ? why : operation_state.cause();
}

/// The same for an operation that was started earlier and that no caller waits for now.
template <class State>
HOCKET_COLD failure examined(State& state, operation& operation_state) {
  error_context at;
  operation_state.locate(at);
  const call_record* const entered = state.calls().find(static_cast<std::uint32_t>(at.sequence));
  if (entered == nullptr) return operation_state.cause();
  const call_site call{entered->operation, entered->site, {}};
  const auto locate = [&](error_context& context) { operation_state.locate(context); };
  return in_context(examined(state, operation_state, never_stopped{}, call, locate), state, call);
}

/// Of thousands of messages in flight, a call that waits for one advances the others in turn, some at a time, and more
/// before it sleeps. So the time of a message does not depend on the number of others.
inline constexpr std::size_t most_advanced_at_once = 64;
inline constexpr std::size_t most_advanced_before_sleep = 1024;

/// Advances operations that were started earlier and that no caller waits for now, at most `most` of them. Returns
/// whether one made progress. A failure of one revokes the communicator; no operation may be advanced after that.
template <class State>
bool advance_others(State& state, const operation* except, std::size_t most = most_advanced_at_once) {
  auto& active = state.active();
  bool moved = false;
  for (std::size_t left = std::min(most, active.size()); left > 0 && !active.empty(); --left) {
    if (state.revoked()) return true;
    operation* const each = active.take_turn();
    if (each == except) continue;
    if (!each->over()) {
      const machine_status status = each->poll();
      if (status == machine_status::failed) state.revoke_undelivered(examined(state, *each));
      if (status == machine_status::done) each->entry().ends();
      if (status == machine_status::done && state.flagged()) each->discard(invalidated_by_peer());
      moved = moved || status != machine_status::blocked;
    }
    if (each->over()) active.remove(*each);
  }
  return moved;
}

/// Returns whether a call that makes progress, such as a long copy or reduction, must still check for failure or abort:
/// peers whose buffers it reads wait for it to end. Also progresses sends that have begun.
template <class State>
bool should_check_failures(State& state) {
  if constexpr (!State::endpoints_type::shares_address_space) state.endpoints().progress();
  return state.flagged() || state.aborted() || state.endpoints().has_control_message();
}

/// Sleeps until a peer wakes this rank, but some ms at most, if peers do so. `look()` looks for what the rank waits for,
/// after it has announced that it will sleep. Returns whether it found something.
template <class State, class Look>
bool sleep_until_woken(State& state, wait_policy& waiting, Look look) {
  if (!waiting.should_sleep()) return false;
  if (!transport::may_sleep(state.endpoints())) {
    waiting.yield();
    return false;
  }
  if constexpr (transport::can_sleep<typename State::endpoints_type>) {
    auto& endpoints = state.endpoints();
    endpoints.announce_sleep();
    endpoints.progress();
    const bool found = look();
    if (found || state.flagged() || state.aborted() || endpoints.has_control_message()) {
      endpoints.stay_awake();
      return found;
    }
    endpoints.sleep();
    waiting.slept();
  }
  return false;
}

/// The same for operations.
template <class State>
bool sleep_until_woken(State& state, operation& operation_state, wait_policy& waiting) {
  const auto wait_for_peers = [&] {
    std::size_t left = most_advanced_before_sleep;
    for (const operation* const each : state.active()) {
      if (!each->over() && !each->waits_for_peers()) return false;
      if (--left == 0) break;
    }
    return operation_state.waits_for_peers();
  };
  if (!waiting.should_sleep()) return false;
  if (!wait_for_peers()) {
    waiting.yield();
    return false;
  }
  return sleep_until_woken(state, waiting, [&] {
    return operation_state.poll() != machine_status::blocked ||
           advance_others(state, &operation_state, most_advanced_before_sleep);
  });
}

/// Reads control messages at the end of a call that has not waited, if they come by the network. A rank that only sends,
/// such as one of a gather that is not the root, waits in no call, and would not learn that a peer has failed. A failure
/// that is found ends the next call.
template <class State>
void look_for_failures(State& state, [[maybe_unused]] const call_site& call, [[maybe_unused]] locator locate) {
  if constexpr (!State::endpoints_type::shares_address_space) {
    auto& endpoints = state.endpoints();
    if (endpoints.windows_reachable()) return;  // peers raise a flag
    endpoints.progress();
    if (!endpoints.has_control_message()) return;
    const auto where = [&] { return position_of(call, locate); };
    static_cast<void>(poll_control_messages(state, where));
  }
}

/// Polls `operation_state` until it is complete. A failure revokes the communicator. Call between `enter` and `leave`.
template <class State>
outcome drive(State& state, operation& operation_state, stop_query stop, const call_site& call) {
  wait_policy waiting(call.timeout, state.spin());
  const auto locate = [&](error_context& at) { operation_state.locate(at); };
  for (;;) {
    if (state.revoked() && !operation_state.over()) [[unlikely]]
      return end_failed_call(state, state.consume_cause(), call, locate);
    const machine_status status = operation_state.poll();
    // If a peer has failed meanwhile, data read from its buffers may be invalid.
    if (status == machine_status::done && !state.flagged()) {
      waiting.progressed();
      operation_state.entry().ends();
      if (!waiting.has_waited_long()) look_for_failures(state, call, locate);
      return {};
    }
    if (status == machine_status::progressed) {
      waiting.progressed();
      if (!should_check_failures(state)) continue;
    }
    if (status == machine_status::blocked) {
      state.endpoints().progress();
      if (!state.active().empty() && advance_others(state, &operation_state)) {
        waiting.progressed();
        continue;
      }
      if (!waiting.tick()) continue;
      if (sleep_until_woken(state, operation_state, waiting)) continue;
    }
    failure cause = status == machine_status::failed
                        ? reason_of_failure(state, operation_state, stop, waiting, call, locate)
                        : reason_to_end(state, stop, waiting, call, locate);
    if (cause)
      return end_failed_call(state, with_overdue_reason(state, operation_state, std::move(cause)), call, locate);
  }
}

/// Returns why an operation that an earlier call began must not continue; no failure if it may. Call before polling it,
/// in each call: a peer that has failed meanwhile did not wait for this rank, which was in no call, so buffers that the
/// peer exposed may be invalid.
template <class State>
failure failed_meanwhile(State& state, const operation& operation_state, stop_query stop, wait_policy& waiting,
                         const call_site& call, locator locate) {
  if (!state.flagged() || state.revoked() || operation_state.over()) [[likely]]
    return {};
  return with_overdue_reason(state, operation_state, reason_to_end(state, stop, waiting, call, locate));
}

}  // namespace detail
HOCKET_END_NAMESPACE
