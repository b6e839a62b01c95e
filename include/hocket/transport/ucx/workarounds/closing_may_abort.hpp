// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which connections are not closed before the process ends, and with them all that UCX has for their world.
///
/// Version: seen with UCX 1.13.
/// Symptom: UCX ends the process by an assertion ("got REP message") if it closes a connection to which it still has an
///   answer to write, of those that make connections. In the queue of a process of this host that died there may never be
///   room for that answer.
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
