// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Start-up through an all-gather of the program itself: nothing else is needed, and a failure of one rank is known to
/// all, although no deadline ends the all-gather.
#include "support/catch.hpp"
#include "ucx/all_gather.hpp"
#include "ucx/ranks.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace ucx_test;
using hocket::errc;
using hocket::bootstrap::blob;
using hocket::bootstrap::byte_view;

/// Runs `body(all_gather, world, findings)` on each rank, without any variable that names the world.
template <class Body>
std::string run_alone(int ranks, const route& way, Body body) {
  shared_all_gather shared;
  return run_worlds(ranks, way, [&](const world& where, findings& found) {
    for (const char* name : {"HOCKET_RANK", "HOCKET_RANKS", "HOCKET_STORE", "HOCKET_LOCAL_RANK", "HOCKET_LOCAL_RANKS",
                             "HOCKET_STORE_FD", "HOCKET_STORE_OPEN", "HOCKET_TOKEN"}) {
      ::unsetenv(name);
    }
    body([&](byte_view mine) { return shared(where.rank, where.ranks, mine); }, where, found);
  });
}

}  // namespace

TEST_CASE("an all-gather of the program is sufficient to connect") {
  for (const route& way : {shared_memory, network}) {
    for (const int ranks : {1, 2, 3, 5, 8}) {
      INFO(ranks << " ranks over " << way.name);
      CHECK(run_alone(ranks, way, [](const auto& all_gather, const world& where, findings& found) {
              int calls = 0;
              const auto counted = [&](byte_view mine) { return ++calls, all_gather(mine); };
              auto comm = hocket::ucx::connect(counted, where.rank, where.ranks, {.timeout = 30s});
              found.equal(comm.rank(), where.rank, "rank");
              found.equal(comm.size(), where.ranks, "number of ranks");
              const int during_start_up = calls;
              meet_all(comm);
              check_sum(comm, 1000, found);
              found.equal(calls, during_start_up, "calls of the all-gather after start-up");
            }) == "");
    }
  }
}

TEST_CASE("if start-up fails on one rank, it fails on all, without a rank that waits in the all-gather") {
  CHECK(run_alone(3, shared_memory, [](const auto& all_gather, const world& where, findings& found) {
          if (where.rank == 1) ::setenv("UCX_TLS", "no_such_transport", 1);
          const auto cause = found.fails(errc::unreachable, "connect",
                                         [&] { hocket::ucx::connect(all_gather, where.rank, where.ranks); });
          found.expect(cause.message().find("no_such_transport") != std::string::npos, cause.message());
        }) == "");
  CHECK(run_alone(3, shared_memory, [](const auto& all_gather, const world& where, findings& found) {
          const std::size_t staging = where.rank == 2 ? 4096 : 8192;
          found.fails(errc::mismatch, "connect",
                      [&] { hocket::ucx::connect(all_gather, where.rank, where.ranks, {.staging_bytes = staging}); });
        }) == "");
}

TEST_CASE("connect refuses an all-gather that does not return the bytes of each rank, and ranks that do not exist") {
  using fault = std::vector<blob> (*)(std::vector<blob>);
  constexpr fault faults[] = {
      [](std::vector<blob> all) { return all.pop_back(), all; },
      [](std::vector<blob> all) { return std::swap(all.front(), all.back()), all; },
      [](std::vector<blob> all) { return all.front().push_back(std::byte{1}), all.back().pop_back(), all; },
  };
  for (const fault& wrong : faults) {
    CHECK(run_alone(2, shared_memory, [&](const auto& all_gather, const world& where, findings& found) {
            const auto changed = [&](byte_view mine) { return wrong(all_gather(mine)); };
            const auto cause = found.fails(errc::invalid_argument, "connect",
                                           [&] { hocket::ucx::connect(changed, where.rank, where.ranks); });
            found.expect(cause.reason.find("all_gather function") != std::string::npos, cause.reason);
          }) == "");
  }
  const auto uncalled = [](byte_view) -> std::vector<blob> { std::abort(); };
  for (const auto& [rank, ranks] : {std::pair{0, 0}, {-1, 2}, {2, 2}, {0, 65537}, {0, -1}}) {
    CHECK_THROWS_WITH(hocket::ucx::connect(uncalled, rank, ranks), Catch::Contains("1 to 65536"));
  }
}
