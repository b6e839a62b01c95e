// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A rank whose call has returned may compute for long. What it sent arrives meanwhile, although it calls nothing.
#include "support/catch.hpp"
#include "ucx/ranks.hpp"

#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/shared_pages.hpp>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace ucx_test;
using hocket::with;

constexpr route routes[] = {shared_memory, posix_memory, network, whole_messages};

/// Runs `call(comm, count)` on each rank for several lengths. A rank whose call has returned makes no other call until
/// those of all ranks have returned. Sockets hold few bytes to send, so that the last bytes of a message do not fit.
template <class Call>
std::string returns_on_all(int ranks, const route& way, Call call) {
  hocket::failure no_memory;
  const hocket::platform::shared_pages pages(sizeof(std::atomic<int>), no_memory);
  REQUIRE(!no_memory);
  auto& returned = *new (pages.data()) std::atomic<int>(0);
  return run_worlds(ranks, way, [&](const world& where, findings& found) {
    ::setenv("UCX_TCP_SNDBUF", "4k", 1);
    auto comm = hocket::ucx::connect(where);
    int expected = 0;
    for (const std::size_t bytes : {8U, 5'000U, 60'000U, 100'000U, 400'000U}) {
      for (int turn = 0; turn < 2; ++turn) {
        call(comm, bytes / sizeof(int));
        returned.fetch_add(1);
        expected += ranks;
        const auto last = hocket::deadline::after(4s);
        while (returned.load() < expected && !last.passed()) std::this_thread::sleep_for(100us);
        found.expect(!last.passed(), "a call of another rank with " + std::to_string(bytes) +
                                         " bytes had not returned 4 s after that of this rank");
      }
    }
  });
}

}  // namespace

TEST_CASE("a message arrives although its sender calls nothing after the send has returned") {
  for (const route& way : routes) {
    INFO(way.name);
    CHECK(returns_on_all(2, way, [](communicator& comm, std::size_t count) {
            std::vector<int> values(count, 1);
            if (comm.rank() == 0) return hocket::send(comm, values, hocket::peer{1});
            std::this_thread::sleep_for(2ms);  // until the sockets are full
            hocket::recv(comm, values, hocket::peer{0});
          }) == "");
  }
}

TEST_CASE("a collective call returns on all ranks although those where it has returned call nothing") {
  for (const route& way : routes) {
    for (const int ranks : {2, 3}) {
      INFO(way.name << ", " << ranks << " ranks");
      CHECK(returns_on_all(ranks, way, [](communicator& comm, std::size_t count) {
              const std::vector<int> in(count, comm.rank());
              std::vector<int> out(count);
              hocket::all_reduce(comm, in, out);
              hocket::all_reduce(comm, in, out, std::plus<>{}, with(hocket::ring));
            }) == "");
    }
  }
}
