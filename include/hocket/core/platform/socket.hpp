// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// TCP with deadlines: listen, connect, send all, receive all. Every function returns a `failure` instead of throwing,
/// never raises SIGPIPE, and works with IPv4 and IPv6 names alike.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/file_descriptor.hpp>
#include <hocket/core/platform/resolve.hpp>
#include <hocket/core/platform/wait_limit.hpp>
#include <hocket/core/platform/wait_ready.hpp>
#include <hocket/core/text.hpp>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

HOCKET_BEGIN_NAMESPACE

namespace platform {

/// The address that a socket listens on or connects to.
struct socket_address {
  sockaddr_storage storage{};
  socklen_t size = sizeof(sockaddr_storage);

  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage); }

  std::uint16_t port() const noexcept {
    if (storage.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
    if (storage.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port);
    return 0;
  }
};

inline socket_address local_address(int socket) noexcept {
  socket_address result;
  if (::getsockname(socket, result.get(), &result.size) != 0) result = {};
  return result;
}

inline socket_address remote_address(int socket) noexcept {
  socket_address result;
  if (::getpeername(socket, result.get(), &result.size) != 0) result = {};
  return result;
}

/// Returns "host:port", with brackets around an IPv6 address.
inline std::string endpoint_text(const std::string& host, std::uint16_t port) {
  const bool bracket = host.find(':') != std::string::npos;
  return hocket::detail::concat({bracket ? '[' + host + ']' : host, ':', port});
}

/// Returns the address of the other end of a connection, as numeric "host:port"; empty if it is unknown.
inline std::string remote_text(int socket) {
  const socket_address there = remote_address(socket);
  char host[NI_MAXHOST];
  if (there.port() == 0) return {};
  if (::getnameinfo(there.get(), there.size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0) return {};
  return endpoint_text(host, there.port());
}

namespace detail {

inline void set_option(int socket, int level, int option, int value) noexcept {
  ::setsockopt(socket, level, option, &value, sizeof value);
}

/// Sends small messages without delay, and detects after about five seconds that the peer's machine has vanished.
inline void tune_stream(int socket) noexcept {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 2);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

/// Returns 0 or the error number.
inline int listen_at(const sockaddr* address, socklen_t size, int family, file_descriptor& result) {
  file_descriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return errno;
  set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (family == AF_INET6) set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (::bind(socket.get(), address, size) != 0 || ::listen(socket.get(), SOMAXCONN) != 0) return errno;
  result = std::move(socket);
  return 0;
}

}  // namespace detail

/// Listens at `host` (all interfaces if empty) and `port` (0: the system picks one). Returns 0 or an error number.
inline int listen_on(const std::string& host, std::uint16_t port, file_descriptor& result, failure& cause) {
  address_list list;
  cause = resolve(host, port, deadline(), list);
  if (cause) return EADDRNOTAVAIL;
  int first_error = 0;
  // A socket for all interfaces of IPv6 also takes IPv4, so it comes first.
  for (const int family : {AF_INET6, AF_INET}) {
    for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
      if (entry->ai_family != family) continue;
      const int error = detail::listen_at(entry->ai_addr, entry->ai_addrlen, family, result);
      if (error == 0) return 0;
      if (first_error == 0 || error == EADDRINUSE) first_error = error;
    }
  }
  if (first_error == 0) first_error = EADDRNOTAVAIL;
  cause = system_failure("cannot listen at " + endpoint_text(host, port), first_error);
  return first_error;
}

/// Connects to one address.
inline failure connect_to(const sockaddr* address, socklen_t size, const wait_limit& limit, file_descriptor& result) {
  file_descriptor socket(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return system_failure("cannot make a socket", errno);
  detail::tune_stream(socket.get());
  if (::connect(socket.get(), address, size) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) return system_failure("cannot connect", errno, errc::unreachable);
    if (failure cause = wait_ready(socket.get(), POLLOUT, limit)) return cause;
    int error = 0;
    socklen_t error_size = sizeof error;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &error_size);
    if (error != 0) return system_failure("cannot connect", error, errc::unreachable);
  }
  result = std::move(socket);
  return {};
}

/// Connects to the first address of `host` that answers. One attempt: after `errc::unreachable`, a retry may succeed.
inline failure connect_to(const std::string& host, std::uint16_t port, const wait_limit& limit,
                          file_descriptor& result) {
  address_list list;
  if (failure cause = resolve(host, port, limit, list)) return cause;
  failure cause = make_failure(errc::unreachable, hocket::detail::concat({"host '", host, "' has no address"}));
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    cause = connect_to(entry->ai_addr, entry->ai_addrlen, limit.at_most(std::chrono::seconds(5)), result);
    if (!cause || cause.code == errc::aborted) return cause;
  }
  if (cause.code == errc::timeout)
    cause = make_failure(errc::unreachable, hocket::detail::concat({"no answer from host '", host, "'"}));
  return cause;
}

/// Returns whether `cause`, from `connect_to`, states that no process listens there.
inline bool is_refused(const failure& cause) {
  return cause.code == errc::unreachable && cause.reason == system_failure("cannot connect", ECONNREFUSED).reason;
}

/// Sends all of `bytes`.
inline failure send_all(int socket, std::span<const std::byte> bytes, const wait_limit& limit) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (failure cause = wait_ready(socket, POLLOUT, limit)) return cause;
    } else if (sent < 0 && errno != EINTR) {
      return system_failure("the connection broke", errno, errc::peer_lost);
    }
  }
  return {};
}

/// Fills `bytes`. Returns `errc::peer_lost` if the stream ends before that.
inline failure receive_all(int socket, std::span<std::byte> bytes, const wait_limit& limit) {
  while (!bytes.empty()) {
    const ssize_t received = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (received > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(received));
    } else if (received == 0) {
      return make_failure(errc::peer_lost, "the connection was closed");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (failure cause = wait_ready(socket, POLLIN, limit)) return cause;
    } else if (errno != EINTR) {
      return system_failure("the connection broke", errno, errc::peer_lost);
    }
  }
  return {};
}

}  // namespace platform

HOCKET_END_NAMESPACE
