// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Definitions of <hocket/engine/flight_record.hpp>.
#pragma once

#include <hocket/communicator/communicator.hpp>
#include <hocket/communicator/communicator_guard.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/engine/active_calls.hpp>
#include <hocket/engine/flight_record.hpp>

#include <string>

HOCKET_BEGIN_NAMESPACE

template <class Domain>
std::string flight_record(const communicator<Domain>& comm) {
  auto& state = detail::communicator_access::state(comm);
  const detail::communicator_guard here(state);
  if (const outcome refused = here.refused(); refused.failed()) raise(refused.cause());
  return state.recorder().text(state.calls(), state.revoked() ? &state.cause() : nullptr, detail::active_calls(state));
}

HOCKET_END_NAMESPACE
