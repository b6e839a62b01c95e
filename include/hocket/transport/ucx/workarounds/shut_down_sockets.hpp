// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Shuts TCP connections down before UCX closes them.
///
/// Version: seen with UCX 1.13.
/// Symptom: UCX sends a last message on each connection that it closes, and retries forever while the socket is full,
///   for example if the link is cut or the peer does not read.
/// Test: ucx/failure.test.cpp, "a connection whose socket is full is closed within four seconds".
///   It passed four times without this header on the machine where that was tried: make it fail before removing this.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/transport/ucx/workarounds/tcp_sockets.hpp>

#include <chrono>

#include <sys/socket.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// Breaks the connections for which `chosen(tcp_socket)` holds. Reads from them end immediately, so that UCX, which
/// makes progress in `advance()`, finds that the peer has closed them and writes no more. If UCX has not closed them
/// within 20 ms, shuts them down for writing too; then the last message fails.
template <class Chosen, class Advance>
void shut_down_sockets(Chosen chosen, Advance advance) noexcept {
  const deadline last = deadline::after(std::chrono::milliseconds(20));
  for (bool late = false; !late;) {
    late = last.passed();
    bool some = false;
    for (const tcp_socket& each : own_tcp_sockets()) {
      if (each.is_listening || !chosen(each)) continue;
      ::shutdown(each.descriptor, late ? SHUT_RDWR : SHUT_RD);
      some = true;
    }
    if (!some) return;
    advance();
  }
}

}  // namespace ucx
HOCKET_END_NAMESPACE
