// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Programs that are no ranks but connect to ports of ranks: with noise, with parts of genuine connections that they have
/// recorded, and with nothing.
#pragma once

#include <hocket/bootstrap/blob.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/file_descriptor.hpp>
#include <hocket/core/platform/socket.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>

#include "ucx/open_ports.hpp"

namespace ucx_test {

/// Listens at a port of its own, forwards each connection to another port, and records what its clients send.
class recorder {
 public:
  recorder() {
    hocket::failure cause;
    if (hocket::platform::listen_on("127.0.0.1", 0, listener_, cause) != 0) hocket::raise(cause);
  }
  recorder(const recorder&) = delete;
  recorder& operator=(const recorder&) = delete;

  std::uint16_t port() const noexcept { return hocket::platform::local_address(listener_.get()).port(); }
  /// Sets the port to forward to.
  void forward_to(std::uint16_t port) noexcept { target_ = port; }
  int descriptor() const noexcept { return listener_.get(); }

  /// Forwards for at most `patience` until something arrives. Call it repeatedly.
  void step(std::chrono::milliseconds patience) {
    std::vector<pollfd> polled{{listener_.get(), POLLIN, 0}};
    for (const link& each : links_) {
      polled.push_back({each.ended[0] ? -1 : each.ends[0].get(), POLLIN, 0});
      polled.push_back({each.ended[1] ? -1 : each.ends[1].get(), POLLIN, 0});
    }
    if (::poll(polled.data(), polled.size(), static_cast<int>(patience.count())) <= 0) return;
    std::size_t i = 1;
    for (link& each : links_) {
      for (const std::size_t side : {0U, 1U}) {
        if (polled[i++].revents != 0) forward(each, side);
      }
    }
    if (polled[0].revents != 0) accept();
  }

  /// What each client has sent so far.
  std::vector<hocket::bootstrap::blob> recorded() const {
    std::vector<hocket::bootstrap::blob> all;
    for (const link& each : links_) all.push_back(each.sent);
    return all;
  }

 private:
  struct link {
    std::array<hocket::platform::file_descriptor, 2> ends;  ///< of the client and of the server
    std::array<bool, 2> ended{};
    hocket::bootstrap::blob sent;
  };

  void accept() {
    link made;
    made.ends[0].reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    const hocket::deadline soon = hocket::deadline::after(std::chrono::seconds(5));
    if (!made.ends[0] || hocket::platform::connect_to("127.0.0.1", target_, soon, made.ends[1])) return;
    links_.push_back(std::move(made));
  }

  static void forward(link& through, std::size_t from) {
    std::array<std::byte, 65536> chunk;
    const ssize_t size = ::recv(through.ends[from].get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    const int to = through.ends[1 - from].get();
    if (size <= 0) {
      through.ended[from] = true;
      ::shutdown(to, SHUT_WR);
      return;
    }
    const auto bytes = std::span(chunk).first(static_cast<std::size_t>(size));
    if (from == 0) through.sent.insert(through.sent.end(), bytes.begin(), bytes.end());
    static_cast<void>(hocket::platform::send_all(to, bytes, hocket::deadline::after(std::chrono::seconds(5))));
  }

  hocket::platform::file_descriptor listener_;
  std::uint16_t target_ = 0;
  std::list<link> links_;
};

/// Makes connections one after the other, of which the last ones stay open.
class strangers {
 public:
  /// `recorded`: what genuine clients have sent to such ports.
  strangers(std::vector<hocket::bootstrap::blob> recorded, unsigned seed)
      : recorded_(std::move(recorded)), random_(seed) {}

  /// Connects to a port that is chosen among `ports`, and sends something. Returns false if there was no connection.
  bool visit(const std::vector<open_port>& ports) { return visit(ports, draw()); }
  /// The same, but sends all that one of the genuine clients has sent.
  bool repeat(const std::vector<open_port>& ports) { return visit(ports, recorded_[random_() % recorded_.size()]); }
  void leave() { open_.clear(); }

 private:
  static constexpr std::size_t most_open = 40;

  bool visit(const std::vector<open_port>& ports, const hocket::bootstrap::blob& bytes) {
    const open_port& there = ports[random_() % ports.size()];
    hocket::platform::file_descriptor socket;
    const std::string host = there.host == "*" ? "127.0.0.1" : there.host;
    if (hocket::platform::connect_to(host, there.port, hocket::deadline::after(std::chrono::seconds(5)), socket)) {
      return false;
    }
    ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (random_() % 4 == 0) {  // closes by a reset
      const linger how{1, 0};
      ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &how, sizeof how);
    }
    open_.push_back(std::move(socket));
    if (open_.size() > most_open) open_.pop_front();
    return true;
  }

  hocket::bootstrap::blob noise(std::size_t size) {
    hocket::bootstrap::blob bytes(size);
    for (std::byte& each : bytes) each = static_cast<std::byte>(random_());
    return bytes;
  }

  hocket::bootstrap::blob draw() {
    const unsigned kind = static_cast<unsigned>(random_() % 8);
    if (kind == 0) return {};
    if (kind < 4 || recorded_.empty()) return noise(random_() % 3000);
    hocket::bootstrap::blob bytes = recorded_[random_() % recorded_.size()];
    if (kind < 6 && !bytes.empty()) bytes.resize(random_() % bytes.size());
    return bytes;
  }

  const std::vector<hocket::bootstrap::blob> recorded_;
  std::mt19937 random_;
  std::deque<hocket::platform::file_descriptor> open_;
};

}  // namespace ucx_test
