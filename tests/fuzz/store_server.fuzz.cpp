// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Bytes that the TCP store's server reads from its connections: any process may connect. A real server, and two
/// clients. The input consists of pieces: a byte for the client (lowest bit) and whether it sends a valid hello before
/// (next bit), a byte for the size, and the bytes.
#include "fuzz.hpp"

#include <hocket/bootstrap/tcp_server.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <sys/un.h>

namespace {

using fuzz::require;
namespace detail = hocket::bootstrap::detail;
namespace platform = hocket::platform;

constexpr int ranks = 2;

/// Returns a listening socket with a name that the system chooses, so that the fuzzer does not run out of ports.
platform::file_descriptor open_listener() {
  platform::file_descriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un nameless{};
  nameless.sun_family = AF_UNIX;
  const bool bound = ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&nameless), sizeof(sa_family_t)) == 0;
  require(bound && ::listen(listener.get(), ranks) == 0, "the server can listen");
  return listener;
}

platform::file_descriptor connect_to(const platform::socket_address& place) {
  platform::file_descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  require(::connect(socket.get(), place.get(), place.size) == 0, "the server can be reached");
  return socket;
}

/// Ignores errors, because the server may already have closed the connection.
void send(const platform::file_descriptor& to, std::span<const std::byte> bytes) {
  static_cast<void>(platform::send_all(to.get(), bytes, hocket::deadline::after(std::chrono::seconds(5))));
}

void send_hello(const platform::file_descriptor& to, int rank) {
  detail::hello greeting;
  greeting.rank = rank;
  greeting.ranks = ranks;
  greeting.token = "token";
  send(to, detail::encode(greeting));
}

/// Reads answers until the server closes the connection, after it has read the end of the client's data.
void drain(const platform::file_descriptor& from) {
  const hocket::wait_limit limit(hocket::deadline::after(std::chrono::seconds(5)));
  std::array<std::byte, 4096> answers;
  hocket::failure end;
  while (!end) end = platform::receive_all(from.get(), answers, limit);
  require(end.code == hocket::errc::peer_lost, "the server closes a connection that its client has shut down");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input in(data, size);
  platform::file_descriptor listener = open_listener();
  const platform::socket_address place = platform::local_address(listener.get());
  detail::server_limits limits;
  limits.late_ranks = {};  // no rank arrives late
  const detail::tcp_server server(std::move(listener), ranks, "token", limits);
  const std::array clients{connect_to(place), connect_to(place)};
  while (!in.empty()) {
    const unsigned how = in.byte();
    const unsigned client = how % 2;
    if ((how & 2U) != 0) send_hello(clients[client], static_cast<int>(client));
    send(clients[client], in.piece(in.byte()));
  }
  for (const auto& client : clients) ::shutdown(client.get(), SHUT_WR);
  for (const auto& client : clients) drain(client);
  return 0;
}
