// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Threads as ranks: how they meet, and what happens when one does not come.
#include "support/catch.hpp"

#include <hocket/collective/all_reduce.hpp>
#include <hocket/communicator/local.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace std::chrono_literals;

TEST_CASE("local::run gives every rank a communicator of its own rank") {
  for (const int ranks : {1, 2, 9}) {
    std::vector<std::atomic<int>> seen(static_cast<std::size_t>(ranks));
    hocket::local::run(ranks, [&](auto comm) {
      if (comm.size() == ranks) seen[static_cast<std::size_t>(comm.rank())].fetch_add(1);
    });
    for (const auto& each : seen) CHECK(each.load() == 1);
  }
}

TEST_CASE("sequential code and code on ranks read the same") {
  std::atomic<int> total{0};
  hocket::local::run(4, [&](auto comm) {
    const int own = comm.rank() + 1;
    int sum = 0;
    hocket::all_reduce(comm, std::span(&own, 1), std::span(&sum, 1));
    total.fetch_add(sum);
  });
  CHECK(total.load() == 40);
}

TEST_CASE("a rank that gives up is waited for again, and may come again") {
  const auto place = std::make_shared<hocket::local::world>(2);
  std::atomic<bool> has_given_up{false};
  std::atomic<int> met{0};
  std::thread late([&] {
    while (!has_given_up.load()) std::this_thread::sleep_for(1ms);
    const auto comm = hocket::local::connect(place, 1, 30s);
    met.fetch_add(comm.size());
  });
  try {
    static_cast<void>(hocket::local::connect(place, 0, 20ms));
    FAIL_CHECK("met nobody, and connected");
  } catch (const hocket::error& cause) {
    CHECK(cause.code() == hocket::errc::timeout);
    CHECK(std::string(cause.what()).find("rank 1 has not shown up") != std::string::npos);
  }
  has_given_up.store(true);
  std::this_thread::sleep_for(50ms);
  CHECK(met.load() == 0);
  const auto comm = hocket::local::connect(place, 0, 30s);
  late.join();
  CHECK(met.load() == 2);
}

TEST_CASE("ranks that there are not, and worlds without any, are refused") {
  const auto refused = [](auto call) {
    try {
      call();
    } catch (const hocket::error& cause) {
      return cause.code() == hocket::errc::invalid_argument;
    }
    return false;
  };
  const auto place = std::make_shared<hocket::local::world>(2);
  for (const int rank : {-1, 2, 5}) {
    CHECK(refused([&] { static_cast<void>(hocket::local::connect(place, rank)); }));
  }
  for (const int ranks : {0, -3}) CHECK(refused([&] { hocket::local::world none(ranks); }));
}

TEST_CASE("ranks that meet exchange what they bring, again and again") {
  constexpr int ranks = 4;
  hocket::local::world place(ranks);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      for (int round = 0; round < 200; ++round) {
        const std::vector<std::byte> own(static_cast<std::size_t>(rank + 1), static_cast<std::byte>(round));
        const auto all = place.exchange(rank, own, hocket::deadline::after(30s));
        for (std::size_t r = 0; r < ranks; ++r) {
          if (all[r] != std::vector<std::byte>(r + 1, static_cast<std::byte>(round))) wrong.fetch_add(1);
        }
      }
    });
  }
  for (std::thread& each : threads) each.join();
  CHECK(wrong.load() == 0);
}

TEST_CASE("a rank that does not show up is named") {
  hocket::local::world place(3);
  std::string text;
  std::thread other([&] {
    try {
      place.exchange(0, {}, hocket::deadline::after(300ms));
    } catch (const hocket::error&) {}
  });
  std::this_thread::sleep_for(50ms);
  try {
    place.exchange(2, {}, hocket::deadline::after(50ms));
  } catch (const hocket::error& problem) {
    CHECK(problem.code() == hocket::errc::timeout);
    CHECK(problem.context().peer == 1);
    text = problem.what();
  }
  other.join();
  CHECK(text.find("rank 1 has not shown up") != std::string::npos);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need more addresses than this leaves
namespace {

/// Leaves room in the address space of this program for the stacks of three threads.
class room_for_three_threads {
 public:
  room_for_three_threads() {
    constexpr std::size_t stack = std::size_t{1} << 30;
    REQUIRE(pthread_getattr_default_np(&attributes_) == 0);
    REQUIRE(getrlimit(RLIMIT_AS, &limit_) == 0);
    pthread_attr_t large = attributes_;
    REQUIRE(pthread_attr_setstacksize(&large, stack) == 0);
    REQUIRE(pthread_setattr_default_np(&large) == 0);
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit tight = limit_;
    tight.rlim_cur = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + 3 * stack + stack * 3 / 4;
    REQUIRE(setrlimit(RLIMIT_AS, &tight) == 0);
  }
  room_for_three_threads(const room_for_three_threads&) = delete;
  room_for_three_threads& operator=(const room_for_three_threads&) = delete;
  ~room_for_three_threads() {
    setrlimit(RLIMIT_AS, &limit_);
    pthread_setattr_default_np(&attributes_);
  }

 private:
  pthread_attr_t attributes_{};
  rlimit limit_{};
};

}  // namespace

TEST_CASE("threads that can't be started are an error in words, and those that were end") {
  std::atomic<int> begun{0};
  hocket::failure found;
  {
    const room_for_three_threads room;
    try {
      hocket::local::run(8, [&](const auto&) { begun.fetch_add(1); });
    } catch (const hocket::error& thrown) {
      found = thrown.cause();
    }
  }
  INFO(found.message());
  CHECK(found.code == hocket::errc::system);
  CHECK(found.reason.find("can't start thread 4 of 8 for the ranks of local::run: ") != std::string::npos);
  CHECK(begun.load() == 0);
}
#endif
