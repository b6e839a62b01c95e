// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Ranks whose limit of open files is too low, in start-up and later.
// needs: ucx
// unsanitized: the sanitizers' runtime needs descriptors itself, to look at memory
#include "support/catch.hpp"
#include "ucx/ranks.hpp"

#include <hocket/group/shrink.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#if !defined(__SANITIZE_ADDRESS__)
namespace {

using namespace ucx_test;
using hocket::errc;
using hocket::with;
using clock = std::chrono::steady_clock;

}  // namespace

TEST_CASE("connect fails on all ranks and names the rank whose limit of open files is too low") {
  for (const rlim_t most : {12U, 14U, 20U, 22U}) {
    CHECK(run_worlds(3, shared_memory, [most](const world& where, findings& found) {
            const rlimit few{most, most};
            if (where.rank == 1) ::setrlimit(RLIMIT_NOFILE, &few);
            const auto cause = found.fails(errc::bad_environment, "connect", [&] { hocket::ucx::connect(where); });
            found.expect(cause.reason.find("raise the limit (ulimit -n)") != std::string::npos, cause.reason);
            found.equal(cause.context.peer, where.rank == 1 ? -1 : 1, "the rank");
          }) == "");
  }
}

TEST_CASE("all ranks survive a connection that fails because a rank has no free descriptor") {
  for (const bool half_open : {false, true}) {
    INFO(half_open);
    const auto body = [half_open](communicator& comm, findings& found) {
      if (half_open) hocket::barrier(comm);  // so that some ranks are connected
      std::vector<int> taken;
      if (comm.rank() == 1) {
        std::this_thread::sleep_for(50ms);  // the others leave the barrier, which must not fail
        const rlimit few{256, 256};
        ::setrlimit(RLIMIT_NOFILE, &few);
        for (int each = 0; (each = ::dup(0)) >= 0;) taken.push_back(each);
      }
      const auto in = vector_of(comm.rank(), 300'000);
      std::vector<std::uint64_t> out(in.size());
      const auto begin = clock::now();
      try {
        hocket::all_reduce(comm, in, out, std::plus<>{}, with(hocket::ring));
        found.expect(out == sum_of(3, in.size()), "a wrong sum");
      } catch (const hocket::error& cause) {  // with UCX 1.13; newer versions use another transport
        found.expect(std::string(cause.what()).find("no free file descriptor; its limit is 256") != std::string::npos,
                     std::string("all_reduce failed with another error: ") + cause.what());
        found.expect(clock::now() - begin < 2s, "it was detected after more than two seconds");
      }
      for (const int each : taken) ::close(each);
      auto next = hocket::shrink(comm);
      found.equal(next.size(), 3, "surviving ranks");
      hocket::all_reduce(next, in, out, std::plus<>{}, with(hocket::ring));
      found.expect(out == sum_of(3, in.size()), "a wrong sum after shrink");
    };
    CHECK(run_ranks(3, shared_memory, body) == "");
  }
}
#endif
