// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Threads as ranks: how they meet, and what happens if one is missing.
#include "support/catch.hpp"

#include <hocket/collective/all_reduce.hpp>
#include <hocket/group/local.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

TEST_CASE("local::run gives every rank a communicator with its rank") {
  for (const int ranks : {1, 2, 9}) {
    std::vector<std::atomic<int>> seen(static_cast<std::size_t>(ranks));
    hocket::local::run(ranks, [&](auto comm) {
      if (comm.size() == ranks) seen[static_cast<std::size_t>(comm.rank())].fetch_add(1);
    });
    for (const auto& each : seen) CHECK(each.load() == 1);
  }
}

TEST_CASE("the body of local::run can call collectives") {
  std::atomic<int> total{0};
  hocket::local::run(4, [&](auto comm) {
    const int own = comm.rank() + 1;
    int sum = 0;
    hocket::all_reduce(comm, std::span(&own, 1), std::span(&sum, 1));
    total.fetch_add(sum);
  });
  CHECK(total.load() == 40);
}

TEST_CASE("a rank whose connect has timed out can connect again, and the others wait for it") {
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
    FAIL_CHECK("connected without the other rank");
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

TEST_CASE("invalid ranks and worlds without ranks are refused") {
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

TEST_CASE("ranks of a world can exchange blobs repeatedly") {
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

TEST_CASE("the timeout of exchange names a missing rank") {
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
