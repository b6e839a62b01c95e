// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The progress loop: advances an operation until it is over, and never longer than its deadline.
///
/// The guards cost nothing where it matters. The clock is read only after 256 polls without progress, the flags of abort
/// and stop every 64; a call that finds its peers there pays for none of them.
#pragma once

#include <hocket/communicator/state.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/engine/machine.hpp>
#include <hocket/engine/operation.hpp>

#include <chrono>
#include <source_location>
#include <string>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Who called, and how long it may take.
struct call_site {
  const char* operation = "";
  std::source_location site{};
  std::chrono::nanoseconds timeout{};
};

/// For calls that have no stop token.
struct never_stopped {
  static constexpr bool stop_requested() noexcept { return false; }
};

/// Counts polls in vain, gives the core away when there are more ranks than cores, and says when it is enough.
class patience {
 public:
  static constexpr unsigned polls_per_check = 64;
  static constexpr unsigned polls_until_armed = 256;
  static constexpr unsigned polls_until_sleep = 1U << 16;

  patience(std::chrono::nanoseconds timeout, bool oversubscribed) noexcept
      : timeout_(timeout), oversubscribed_(oversubscribed) {}

  void progressed() noexcept { polls_ = 0; }

  /// After a poll in vain. True if now is the time to look at flags and clock.
  bool tick() noexcept {
    ++polls_;
    platform::pause();
    if (polls_ % polls_per_check != 0) return false;
    if (polls_ >= polls_until_sleep) {
      platform::nap(50'000);
    } else if (oversubscribed_ || polls_ >= polls_until_sleep / 4) {
      platform::yield();
    }
    return true;
  }

  bool expired() noexcept {
    if (polls_ < polls_until_armed) return false;
    if (!armed_) {
      until_ = deadline::after(timeout_);
      armed_ = true;
      return timeout_.count() <= 0;
    }
    return until_.passed();
  }

 private:
  const std::chrono::nanoseconds timeout_;
  const bool oversubscribed_;
  bool armed_ = false;
  unsigned polls_ = 0;
  deadline until_;
};

inline std::string describe(std::chrono::nanoseconds duration) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  if (milliseconds % 1000 == 0) return std::to_string(milliseconds / 1000) + " s";
  return std::to_string(milliseconds) + " ms";
}

/// Fills in what only the call knows.
template <class State>
failure in_context(failure cause, const State& state, const call_site& call) {
  error_context& context = cause.context;
  if (context.operation == nullptr) context.operation = call.operation;
  if (context.site.line() == 0) context.site = call.site;
  if (context.rank < 0) {
    context.rank = state.rank();
    context.ranks = state.size();
  }
  return cause;
}

/// Why the wait ends now; no failure if it goes on. `locate(context)` says where the operation stands.
template <class State, class Stop, class Locate>
failure reason_to_give_up(State& state, const Stop& stop, patience& waiting, const call_site& call, Locate locate) {
  failure cause;
  if (state.revoked()) {
    cause = state.cause();
    return make_failure(errc::revoked, "an operation that was in flight failed: " + cause.message(),
                        {.peer = cause.context.peer});
  }
  if (state.aborted()) {
    cause = make_failure(errc::aborted, "abort() was called on this communicator");
  } else if (stop.stop_requested()) {
    cause = make_failure(errc::aborted, "the stop token of this call was triggered");
  } else if (state.port().broken(cause)) {
    // as the transport put it
  } else if (waiting.expired()) {
    cause = make_failure(errc::timeout, "waited " + describe(call.timeout) + " for a peer");
  } else {
    return {};
  }
  const int blamed = cause.context.peer;
  locate(cause.context);
  if (blamed >= 0) cause.context.peer = blamed;
  return cause;
}

/// Advances the operations that were started earlier and are not waited for now. True if one of them moved.
template <class State>
bool advance_others(State& state, const operation* except) {
  bool moved = false;
  for (operation* each : state.active()) {
    if (each == except || each->over()) continue;
    const machine_status status = each->poll();
    if (status == machine_status::failed) state.revoke(each->cause());
    moved = moved || status != machine_status::blocked;
  }
  return moved;
}

/// Polls `work` until it is done. A failure revokes the communicator.
template <class State, class Stop>
failure drive(State& state, operation& work, const Stop& stop, const call_site& call) {
  patience waiting(call.timeout, state.port().oversubscribed());
  for (;;) {
    failure cause;
    switch (work.poll()) {
      case machine_status::done: return {};
      case machine_status::progressed: waiting.progressed(); continue;
      case machine_status::failed: cause = work.cause(); break;
      case machine_status::blocked: {
        state.port().progress();
        if (!state.active().empty() && advance_others(state, &work)) {
          waiting.progressed();
          continue;
        }
        if (!waiting.tick()) continue;
        cause = reason_to_give_up(state, stop, waiting, call, [&](error_context& at) { work.locate(at); });
        if (!cause) continue;
        break;
      }
    }
    cause = in_context(std::move(cause), state, call);
    state.revoke(cause);
    return cause;
  }
}

}  // namespace detail
HOCKET_END_NAMESPACE
