// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Definitions of <hocket/collective/host/push.hpp>: the paths of a push that waits or fails.
#pragma once

#include <hocket/collective/host/push.hpp>
#include <hocket/communicator/communicator_guard.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/engine/drive.hpp>
#include <hocket/engine/operation.hpp>

#include <exception>
#include <new>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

template <class State>
HOCKET_NO_INLINE outcome wait_slow_path(const push_exchange<State>& operation_state, const call_site& call,
                                        stop_query stop, int peer) {
  State& state = operation_state.state;
  const int step = peer < 0 ? 0 : 1;
  wait_policy waiting(call.timeout, state.spin());
  while (peer < 0 ? !state.has_credit(operation_state.sequence) : !operation_state.arrived(peer)) {
    if (!waiting.tick()) continue;
    state.endpoints().progress();
    const auto look = [&] { return operation_state.arrived(peer); };
    if (peer < 0) {
      waiting.yield_instead_of_sleep();
    } else if (sleep_until_woken(state, waiting, look)) {
      continue;
    }
    const auto locate = [&](error_context& context) { operation_state.locate(context, step, peer); };
    failure cause = peer >= 0 ? operation_state.mismatch(peer) : failure{};
    cause = cause ? examined(state, stop, call, locate, std::move(cause))
                  : reason_to_end(state, stop, waiting, call, locate);
    if (!cause) continue;
    const int culprit = cause.context.peer;
    operation_state.locate(cause.context, step, culprit);
    return end_failed_call(state, std::move(cause), call, locate);
  }
  return {};
}

template <class State>
outcome refuse_entry(State& state, const call_site& call) {
  return in_context(entry_refusal(state), state, call);
}

#if HOCKET_HAS_EXCEPTIONS
template <class State>
HOCKET_COLD outcome end_by_exception(State& state, const call_site& call) {
  const auto locate = [&](error_context& at) { at.sequence = state.last_sequence(); };
  outcome ended = if_memory_lasts(state, call, locate, [&]() -> outcome {
    failure cause = left_by_current_exception();
    locate(cause.context);
    return end_failed_call(state, std::move(cause), call, locate);
  });
  state.leave();
  return ended;
}
#endif

}  // namespace detail
HOCKET_END_NAMESPACE
