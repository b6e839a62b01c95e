// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The TCP sockets of this process, most of which belong to UCX.
///
/// Version: seen with UCX 1.13.
/// Symptom: UCX does not report which socket leads to which peer, which shut_down_sockets.hpp needs. Programs that this
///   process starts inherit UCX's sockets: while such a program holds a connection, the peer does not learn that this
///   process has ended. So this header finds the sockets in /proc/self/fd, and sets FD_CLOEXEC.
/// Test: ucx/connect.test.cpp, "programs that a rank starts do not inherit its connections".
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/directory.hpp>
#include <hocket/core/platform/file_descriptor.hpp>
#include <hocket/core/platform/network_interface.hpp>
#include <hocket/core/platform/socket.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// Address of one end of a connection. Processes send it to each other as raw bytes.
struct tcp_address {
  platform::ip_address host;
  std::uint16_t port = 0;  ///< in network byte order, like the address

  bool operator==(const tcp_address&) const = default;
};

struct tcp_socket {
  int descriptor = -1;
  bool is_listening = false;
  tcp_address local_address;
  tcp_address remote_address;

  /// Returns whether the socket can't be written now: its send buffer is full, or it is listening or connecting.
  bool full() const noexcept {
    pollfd writable{descriptor, POLLOUT, 0};
    return ::poll(&writable, 1, 0) == 0;
  }

  /// Prevents the programs that this process starts from inheriting the socket.
  void set_close_on_exec() const noexcept { platform::set_inherited(descriptor, false); }
};

namespace detail {

inline tcp_address tcp_address_in(const platform::socket_address& place) noexcept {
  return {platform::ip_address_in(place.get()), htons(place.port())};
}

inline bool has_option(int descriptor, int option, int value) noexcept {
  int found = 0;
  socklen_t size = sizeof found;
  return ::getsockopt(descriptor, SOL_SOCKET, option, &found, &size) == 0 && found == value;
}

}  // namespace detail

/// Returns the TCP sockets of this process, those of UCX and all others.
inline std::vector<tcp_socket> own_tcp_sockets() {
  std::vector<tcp_socket> result;
  for (const std::string& name : platform::list_directory("/proc/self/fd")) {
    tcp_socket each;
    each.descriptor = std::atoi(name.c_str());
    if (!detail::has_option(each.descriptor, SO_TYPE, SOCK_STREAM)) continue;
    each.local_address = detail::tcp_address_in(platform::local_address(each.descriptor));
    if (!each.local_address.host) continue;
    each.remote_address = detail::tcp_address_in(platform::remote_address(each.descriptor));
    each.is_listening = detail::has_option(each.descriptor, SO_ACCEPTCONN, 1);
    result.push_back(each);
  }
  return result;
}

inline bool contains(std::span<const tcp_address> all, const tcp_address& one) noexcept {
  return std::find(all.begin(), all.end(), one) != all.end();
}

/// Returns the sockets on which this process listens for connections.
inline std::vector<tcp_socket> listening_sockets() {
  std::vector<tcp_socket> result = own_tcp_sockets();
  std::erase_if(result, [](const tcp_socket& each) { return !each.is_listening; });
  return result;
}

}  // namespace ucx
HOCKET_END_NAMESPACE
