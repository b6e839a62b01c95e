// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Settings without which UCX waits or aborts over TCP.
///
/// Version: TCP_CONN_NB: seen with UCX 1.13 and 1.22; TCP_MAX_POLL: with 1.13.
/// Symptom: without TCP_CONN_NB, the rank that sends first to a peer behind a broken link blocks inside UCX for
///   minutes, until TCP times out. Without TCP_MAX_POLL, UCX takes several events at a time, and aborts the process if
///   one of them ends a connection that a later one refers to: rarely, when a peer is killed while ranks connect.
/// Test: two_hosts, over a link that is cut; fault/kill.test.cpp, "processes killed while the world connects", over TCP.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/transport/ucx/workarounds/version.hpp>

#include <array>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// A setting of UCX. Its name begins with the transport's name only since UCX 1.17; the variable's name always does.
struct setting {
  const char* variable;  ///< name without "UCX_"; a value that the user has set takes precedence
  const char* name;
  const char* value;
};

inline std::array<setting, 2> tcp_settings() noexcept {
  const bool named = at_least(17);
  return {{{"TCP_CONN_NB", named ? "TCP_CONN_NB" : "CONN_NB", "y"},
           {"TCP_MAX_POLL", named ? "TCP_MAX_POLL" : "MAX_POLL", "1"}}};
}

}  // namespace ucx
HOCKET_END_NAMESPACE
