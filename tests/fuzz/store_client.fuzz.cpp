// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Bytes that a client of the TCP store reads from any process that listens on the port of rank 0. A real client, and a
/// server that sends the input, independent of the request. The lowest bit of the first byte chooses between 3 ranks
/// and so many that there is no memory for their longest answer.
#include "fuzz.hpp"

#include <hocket/bootstrap/tcp_store.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

namespace {

using fuzz::require;
namespace platform = hocket::platform;

/// Serves only the first connection.
class impostor {
 public:
  explicit impostor(std::span<const std::byte> words) : words_(words) {
    hocket::failure cause;
    platform::listen_on("127.0.0.1", 0, listener_, cause);
    require(!cause, "the server can listen");
    thread_ = std::thread([this] { serve(); });
  }
  impostor(const impostor&) = delete;
  impostor& operator=(const impostor&) = delete;
  ~impostor() { thread_.join(); }

  std::uint16_t port() const noexcept { return platform::local_address(listener_.get()).port(); }
  bool done() const noexcept { return done_.load(); }

 private:
  void serve() {
    const hocket::wait_limit limit(hocket::deadline::after(std::chrono::seconds(5)));
    require(!platform::wait_ready(listener_.get(), POLLIN, limit), "the client connects");
    const platform::file_descriptor client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    static_cast<void>(platform::send_all(client.get(), words_, limit));
    ::shutdown(client.get(), SHUT_WR);
    std::array<std::byte, 4096> ignored;
    hocket::failure end;
    while (!end) end = platform::receive_all(client.get(), ignored, limit);
    done_.store(true);
    require(end.code == hocket::errc::peer_lost, "the client closes its connection");
  }

  std::span<const std::byte> words_;
  platform::file_descriptor listener_;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input in(data, size);
  const int ranks = in.byte() % 2 == 0 ? 3 : 1 << 24;
  impostor server(in.rest());
  const auto served = [&] { return server.done(); };
  const hocket::wait_limit limit(hocket::deadline::after(std::chrono::seconds(5)), served);
  fuzz::may_raise(ranks, [&] {
    hocket::bootstrap::tcp_store store({1, ranks, "127.0.0.1", server.port(), "token", -1}, limit);
    const std::array<std::byte, 2> mine{};
    fuzz::may_raise(ranks, [&] {
      const auto all = store.gather("everybody", 1, ranks, mine, limit);
      require(all.size() == static_cast<std::size_t>(ranks), "each rank has a blob");
    });
    fuzz::may_raise(ranks, [&] { store.add("counter", 1, limit); });
    fuzz::may_raise(ranks, [&] { store.get("key", limit); });
  });
  return 0;
}
