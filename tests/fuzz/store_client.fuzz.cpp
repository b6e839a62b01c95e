// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a client of the TCP store reads: from whoever listens where its rank 0 should. A real client, and a server that
/// says what the input holds, whatever it is asked. The lowest bit of the first byte chooses between few ranks, and so
/// many that nobody has memory for the longest answer of theirs.
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

/// Serves one connection, the first.
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
    require(!platform::wait_ready(listener_.get(), POLLIN, limit), "the client comes");
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
      require(all.size() == static_cast<std::size_t>(ranks), "there is a blob of each rank");
    });
    fuzz::may_raise(ranks, [&] { store.add("counter", 1, limit); });
    fuzz::may_raise(ranks, [&] { store.get("key", limit); });
  });
  return 0;
}
