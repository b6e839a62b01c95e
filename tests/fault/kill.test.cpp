// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: ucx
//
// Processes that are killed at any moment of a stream of mixed collectives: every survivor hears of it within a second
// (three over the network) and is told the right name, while the deadline of its calls is a minute away.
#include "support/catch.hpp"
#include "ucx/ranks.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <random>
#include <string>
#include <vector>

#include <sys/mman.h>

namespace {

using namespace ucx_test;
using hocket::errc;
using clock = std::chrono::steady_clock;

/// What processes tell the test, in memory that all of them share.
struct blackboard {
  static constexpr std::size_t most_ranks = 8;
  std::atomic<std::int64_t> died_at{0};
  std::atomic<std::int64_t> noticed_at[most_ranks] = {};
};

class shared_blackboard {
 public:
  shared_blackboard()
      : memory_(::mmap(nullptr, sizeof(blackboard), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    REQUIRE(memory_ != MAP_FAILED);
    new (memory_) blackboard;
  }
  shared_blackboard(const shared_blackboard&) = delete;
  shared_blackboard& operator=(const shared_blackboard&) = delete;
  ~shared_blackboard() { ::munmap(memory_, sizeof(blackboard)); }

  blackboard* operator->() const noexcept { return static_cast<blackboard*>(memory_); }

 private:
  void* const memory_;
};

std::int64_t now() { return clock::now().time_since_epoch().count(); }

/// One call of a stream that is the same on all ranks. Checks its result.
void call(communicator& comm, findings& found, std::mt19937& random) {
  static constexpr std::size_t sizes[] = {1, 3, 100, 5000, 70'000};
  const std::size_t size = sizes[random() % std::size(sizes)];
  const int root = static_cast<int>(random() % static_cast<unsigned>(comm.size()));
  const auto mine = vector_of(comm.rank(), size);
  std::vector<std::uint64_t> out(size);
  switch (random() % 6) {
    case 0: hocket::all_reduce(comm, mine, out); return found.equal(out, sum_of(comm.size(), size), "a sum");
    case 1:
      hocket::all_reduce(comm, mine, out, std::plus<>{}, hocket::with(hocket::ring));
      return found.equal(out, sum_of(comm.size(), size), "a sum by ring");
    case 2: {
      hocket::request begun = hocket::all_reduce_async(comm, mine, out);
      hocket::barrier(comm);
      begun.wait();
      return found.equal(out, sum_of(comm.size(), size), "a sum in the background");
    }
    case 3:
      if (comm.rank() == root) out = mine;
      hocket::broadcast(comm, out, hocket::root{root});
      return found.equal(out, vector_of(root, size), "a broadcast vector");
    case 4: {
      std::vector<std::uint64_t> all(size * static_cast<std::size_t>(comm.size()));
      hocket::all_gather(comm, mine, all);
      return found.expect(std::equal(mine.begin(), mine.end(), all.begin() + static_cast<std::ptrdiff_t>(
                                                                               size * static_cast<std::size_t>(comm.rank()))),
                          "own part of a gathered vector");
    }
    default: hocket::barrier(comm);
  }
}

/// Kills `victims` after so many microseconds of the stream. Returns what went wrong, and adds to `milliseconds` how long
/// each survivor took to notice.
std::string kill_during_stream(int ranks, const route& way, unsigned seed, const std::vector<int>& victims,
                               std::vector<double>& milliseconds) {
  const shared_blackboard board;
  const auto is_victim = [&](int rank) { return std::find(victims.begin(), victims.end(), rank) != victims.end(); };
  std::string text = run_ranks(ranks, way, [&](communicator& comm, findings& found) {
    std::mt19937 random(seed);
    const auto moment = std::chrono::microseconds(random() % 20'000);
    std::thread killer;
    hocket::barrier(comm);
    if (is_victim(comm.rank())) {
      killer = std::thread([&board, moment] {
        std::this_thread::sleep_for(moment);
        board->died_at.store(now());
        ::raise(SIGKILL);
      });
    }
    hocket::failure cause;
    try {
      for (;;) call(comm, found, random);
    } catch (const hocket::error& caught) {
      cause = caught.cause();
    }
    board->noticed_at[comm.rank()].store(now());
    if (killer.joinable()) killer.join();
    found.expect(cause.code == errc::peer_lost, "another error than peer_lost: " + cause.message());
    found.expect(is_victim(cause.context.peer), "the wrong rank is blamed: " + cause.message());
    found.fails(errc::revoked, "the next call", [&] { hocket::barrier(comm); });
  });
  for (const int victim : victims) {
    const std::string expected = "rank " + std::to_string(victim) + " was ended by signal 9\n";
    if (const auto at = text.find(expected); at != std::string::npos) text.erase(at, expected.size());
  }
  for (int rank = 0; rank < ranks; ++rank) {
    if (is_victim(rank)) continue;
    const auto ticks = clock::duration(board->noticed_at[rank].load() - board->died_at.load());
    milliseconds.push_back(std::chrono::duration<double, std::milli>(ticks).count());
  }
  return text;
}

std::string quantiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) { return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))]; };
  char text[160];
  std::snprintf(text, sizeof text, "%zu survivors noticed after: median %.1f ms, 90 %% %.1f ms, 99 %% %.1f ms, last %.1f ms",
                values.size(), at(0.5), at(0.9), at(0.99), at(1));
  return text;
}

/// 10 moments, or as many as HOCKET_SOAK_MOMENTS says.
unsigned moments() {
  const char* const value = std::getenv("HOCKET_SOAK_MOMENTS");
  return value == nullptr ? 10 : static_cast<unsigned>(std::strtoul(value, nullptr, 10));
}

void kill_at_many_moments(const route& way, double most_milliseconds) {
  for (const int ranks : {2, 3, 5}) {
    std::vector<double> milliseconds;
    for (unsigned seed = 0; seed < moments(); ++seed) {
      std::vector<int> victims{static_cast<int>(seed) % ranks};
      if (ranks == 5 && seed % 3 == 2) victims.push_back((victims[0] + 2) % ranks);  // two deaths at once
      INFO(way.name << ", " << ranks << " ranks, moment " << seed);
      CHECK(kill_during_stream(ranks, way, seed, victims, milliseconds) == "");
    }
    std::printf("%s, %d ranks: %s\n", way.name, ranks, quantiles(milliseconds).c_str());
    CHECK(*std::max_element(milliseconds.begin(), milliseconds.end()) < most_milliseconds);
  }
}

}  // namespace

TEST_CASE("a process that is killed is missed within a second, and by its name") {
  kill_at_many_moments(shared_memory, 1000);
}

TEST_CASE("a process that is killed is missed over the network too") { kill_at_many_moments(network, 3000); }
