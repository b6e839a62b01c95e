// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What this rank did last on a communicator, for programs that want to look before anything has failed.
#pragma once

#include <hocket/communicator/communicator.hpp>
#include <hocket/communicator/communicator_guard.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/engine/active_calls.hpp>

#include <string>

HOCKET_BEGIN_NAMESPACE

/// The text that `communicator::set_flight_recorder` has written after a failure, as of now: the last 32 collectives
/// and 16 messages on `comm`, where those under way stand, and the failure, if there was one. See
/// communicator/flight_writer.hpp.
///
/// Local. **Threads.** As a call: throws `error` (concurrent_use) if another thread is in one on `comm`.
template <class Domain>
std::string flight_record(const communicator<Domain>& comm) {
  auto& state = detail::communicator_access::state(comm);
  const detail::communicator_guard here(state);
  if (const outcome refused = here.refused(); refused.failed()) raise(refused.cause());
  return state.recorder().text(state.calls(), state.revoked() ? &state.cause() : nullptr, detail::active_calls(state));
}

HOCKET_END_NAMESPACE
