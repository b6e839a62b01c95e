// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Connections that must stay open, with the whole worker of their world, until the process ends.
///
/// Version: seen with UCX 1.13.
/// Symptom: UCX ends the process by an assertion ("got REP message") if it closes a connection on which a reply that
///   sets up the connection is still unsent. If the peer is a process of this host that was killed, its queue may never
///   have room for that reply.
/// Test: fault/kill.test.cpp, "processes killed while the world connects".
#pragma once

#include <hocket/core/config.hpp>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

constexpr bool closing_may_abort(bool peer_is_dead, bool shares_memory) noexcept {
  return peer_is_dead && shares_memory;
}

}  // namespace ucx
HOCKET_END_NAMESPACE
