// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Positions of the calls that are active on this rank, and writing the flight record when a failure reaches a call.
#pragma once

#include <hocket/communicator/flight_recorder.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/engine/operation.hpp>

#include <cstdint>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Returns the positions of all incomplete operations and, if given, of the blocking call at `blocking`.
template <class State>
HOCKET_COLD std::vector<active_call> active_calls(const State& state, const error_context* blocking = nullptr) {
  std::vector<active_call> result;
  const auto add = [&](const error_context& at, const log_entry& entry) {
    result.push_back({static_cast<std::uint32_t>(at.sequence), entry, at.lane, at.step, at.peer});
  };
  if (blocking != nullptr) add(*blocking, {});
  for (operation* const each : state.active()) {
    if (each->over()) continue;
    error_context at;
    each->locate(at);
    add(at, each->entry());
  }
  return result;
}

/// Returns the communicator's original failure, if `delivered` is a later call's failure that only quotes it.
template <class State>
HOCKET_COLD failure first_failure(const State& state, const failure& delivered) {
  if (delivered.code != errc::revoked) return delivered;
  failure first = state.cause();
  error_context& at = first.context;
  if (at.sequence == 0 || at.sequence == delivered.context.sequence) {
    if (at.operation == nullptr) at.operation = delivered.context.operation;
    if (at.site.line() == 0) at.site = delivered.context.site;
  }
  if (at.rank < 0) {
    at.rank = delivered.context.rank;
    at.ranks = delivered.context.ranks;
  }
  return first;
}

/// Writes the flight record, once per failed communicator: see communicator/flight_recorder.hpp. `blocking` as above.
template <class State>
HOCKET_COLD void record_failure(State& state, const failure& cause, const error_context* blocking = nullptr) {
  if (!state.recorder().due()) return;
  state.recorder().record(state.calls(), first_failure(state, cause), active_calls(state, blocking));
}

}  // namespace detail
HOCKET_END_NAMESPACE
