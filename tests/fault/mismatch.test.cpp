// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: ucx
//
// Processes whose calls differ report a mismatch within milliseconds, with both call sites, over each route.
#include "support/abort_latency.hpp"
#include "support/catch.hpp"
#include "ucx/ranks.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace ucx_test;
using hocket::errc;
using act = std::function<void(communicator&)>;

constexpr const char* late = "noticed later than promised";

/// Rank 0 runs `one`, the others `other`; all of them fail with `mismatch`, with every text of `says`.
std::string differ_once(int ranks, const route& way, const act& one, const act& other,
                        const std::vector<std::string>& says) {
  return run_ranks(ranks, way, [&](communicator& comm, findings& found) {
    hocket_test::stopwatch watch;
    watch.waits();
    watch.start();
    const hocket::failure cause = found.fails(errc::mismatch, "a call that differs", [&] {
      // The last barrier fails if the others have left it and differ before this rank sees that it is complete.
      for (int i = 0; i < 3; ++i) hocket::barrier(comm);
      watch.start();
      (comm.rank() == 0 ? one : other)(comm);
      hocket::barrier(comm);
    });
    const hocket_test::latency took = watch.stop();
    for (const std::string& text : says) {
      found.expect(cause.message().find(text) != std::string::npos, "'" + text + "' is missing in: " + cause.message());
    }
    found.expect(took.milliseconds < 1000, "noticed after more than a second");
    const double own = took.milliseconds - took.without_core;
    found.expect(own < hocket_test::milliseconds_promised * hocket_test::sanitizer_slowdown,
                 std::string(late) + ": " + std::to_string(own) + " ms");
    found.fails(errc::revoked, "the next call", [&] { hocket::barrier(comm); });
  });
}

/// True if all failures are that it took too long.
bool is_only_late(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool says_who = line.empty() || line.find("ended with exit code 1, and wrote:") != std::string::npos;
    if (!says_who && line.find(late) == std::string::npos) return false;
  }
  return true;
}

/// Like `differ_once`, but in time only in most tries: processes that outnumber the cores may have to wait for a core.
std::string differ(int ranks, const route& way, const act& one, const act& other,
                   const std::vector<std::string>& says) {
  int in_time = 0, too_late = 0;
  for (;;) {
    const std::string wrong = differ_once(ranks, way, one, other, says);
    if (!is_only_late(wrong)) return wrong;
    wrong.empty() ? ++in_time : ++too_late;
    if (in_time > too_late) return "";
    if (too_late == 10) return wrong;
  }
}

template <class Op = std::plus<>, class... Properties>
act reduces(std::size_t size, Op op = {}, Properties... properties) {
  return [=](communicator& comm) {
    std::vector<float> data(size, 1.0F);
    hocket::all_reduce(comm, hocket::in_place(data), op, hocket::with(properties...));
  };
}

act broadcasts(std::size_t size, int root) {
  return [=](communicator& comm) {
    std::vector<float> data(size);
    hocket::broadcast(comm, data, hocket::root{root});
  };
}

}  // namespace

TEST_CASE("processes whose calls differ report a mismatch with both calls") {
  const std::plus<> sum;
  for (const route& way : {shared_memory, network}) {
    for (const int ranks : {2, 3}) {
      INFO(way.name << ", " << ranks << " ranks");
      const std::string file = "mismatch.test.cpp:";
      CHECK(differ(ranks, way, reduces(1), reduces(2), {"of 1 elements", "of 2 elements", file}) == "");
      CHECK(differ(ranks, way, reduces(14), reduces(15), {"of 14 elements", "of 15 elements", file}) == "");
      CHECK(differ(ranks, way, reduces(300, sum, hocket::ring), reduces(360, sum, hocket::ring),
                   {"of 300 elements", "of 360 elements", file}) == "");
      CHECK(differ(ranks, way, reduces(10), reduces(70'000), {"of 10 elements", "of 70000 elements", file}) == "");
      CHECK(differ(ranks, way, reduces(1'000'000), reduces(70'000), {"of 1000000 elements", file}) == "");
      CHECK(differ(ranks, way, reduces(300, sum, hocket::ring), reduces(300, hocket::maximum{}, hocket::ring),
                   {"plus", "maximum", file}) == "");
      CHECK(differ(ranks, way, reduces(5000, sum, hocket::ring), reduces(5000, sum, hocket::recursive_doubling),
                   {"by ring", "by recursive_doubling", file}) == "");
      CHECK(differ(ranks, way, broadcasts(5000, 0), broadcasts(5000, 1), {"broadcast", "from root 1", file}) == "");
      CHECK(differ(ranks, way, reduces(300), broadcasts(300, 0), {"all_reduce", "broadcast", file}) == "");
      const act first = reduces(300), second = [](communicator& comm) { hocket::barrier(comm); };
      CHECK(differ(
                ranks, way, [&](communicator& comm) { first(comm), second(comm); },
                [&](communicator& comm) { second(comm), first(comm); }, {"all_reduce", "barrier", file}) == "");
    }
  }
}

TEST_CASE("if no process waited in earlier calls that differed, the mismatch describes the first of them") {
  const std::string file = "mismatch.test.cpp:";
  const auto then = [](const std::vector<act>& calls) {
    return [=](communicator& comm) {
      for (const act& each : calls) each(comm);
    };
  };
  for (const route& way : {shared_memory, network}) {
    for (const int ranks : {2, 3}) {
      for (const std::size_t size : {1U, 100U, 5000U}) {
        INFO(way.name << ", " << ranks << " ranks, " << size << " elements");
        const std::string what = "broadcast of " + std::to_string(size) + " elements of (float) by ";
        const std::vector<std::string> says{what, " from root 1, called at ", file};
        const act zero = broadcasts(size, 0), one = broadcasts(size, 1), sum = reduces(1);
        CHECK(differ(ranks, way, then({zero, sum}), then({one, sum}), says) == "");
        CHECK(differ(ranks, way, then({zero, zero, sum}), then({one, zero, sum}), says) == "");
        CHECK(differ(ranks, way, then({zero, reduces(300)}), then({one, reduces(300)}), says) == "");
      }
      INFO(way.name << ", " << ranks << " ranks");
      // Six calls that differ, which the peer receives four at a time.
      std::vector<act> many, others;
      for (const std::size_t size : {7U, 6U, 5U, 4U, 3U, 2U}) {
        many.push_back(broadcasts(size, 0));
        others.push_back(broadcasts(size, 1));
      }
      many.push_back(reduces(1)), others.push_back(reduces(1));
      CHECK(differ(ranks, way, then(many), then(others), {"broadcast of 7 elements", "from root 1", file}) == "");
      CHECK(differ(ranks, way, then({broadcasts(1, 0), reduces(300)}), then({broadcasts(2, 1), reduces(300)}),
                   {"broadcast of 1 elements", "broadcast of 2 elements", "from root 1"}) == "");
    }
  }
}

TEST_CASE("a message of another element type of equal size is a mismatch on both processes") {
  for (const route& way : {shared_memory, network}) {
    for (const std::size_t size : {1U, 10'000U}) {
      INFO(way.name << ", " << size << " elements");
      CHECK(run_ranks(2, way, [&](communicator& comm, findings& found) {
              std::vector<int> ints(size, 3);
              std::vector<float> floats(size);
              std::vector<std::byte> bytes(size * sizeof(int));
              if (comm.rank() == 0) {
                hocket::send(comm, ints, hocket::peer{1});
                hocket::send(comm, std::as_bytes(std::span(ints)), hocket::peer{1});
                const hocket::failure cause = found.fails(errc::mismatch, "another type", [&] {
                  hocket::send(comm, ints, hocket::peer{1});
                  hocket::barrier(comm);
                });
                found.expect(cause.message().find("rank 0's call is send of ") != std::string::npos, cause.message());
                return;
              }
              hocket::recv(comm, bytes, hocket::peer{0});
              hocket::recv(comm, ints, hocket::peer{0});
              const hocket::failure cause =
                  found.fails(errc::mismatch, "another type", [&] { hocket::recv(comm, floats, hocket::peer{0}); });
              for (const char* const text : {"another type", "rank 0's call is send of ", "mismatch.test.cpp:"}) {
                found.expect(cause.message().find(text) != std::string::npos, cause.message());
              }
            }) == "");
    }
  }
}

TEST_CASE("UCX prints nothing about messages that are not received after a failure") {
  for (const route& way : {shared_memory, network}) {
    for (int i = 0; i < 5; ++i) {
      const auto ends = results_of(3, way, [](const world& where, findings& found) {
        communicator comm = hocket::ucx::connect(where);
        meet_all(comm);
        std::vector<float> in(100'000), out(300'000);
        found.fails(errc::mismatch, "a call that differs", [&] {
          if (comm.rank() == 0) {
            hocket::all_reduce(comm, hocket::in_place(in), std::plus<>{}, hocket::with(hocket::ring));
          } else {
            hocket::all_gather(comm, in, out, hocket::with(hocket::ring));
          }
        });
      });
      INFO(way.name);
      CHECK(hocket::launch::describe_failures(ends) == "");
      for (const auto& each : ends) CHECK_THAT(each.output, !Catch::Contains("UCX"));
    }
  }
}
