// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// split: the members of each part and their order; parts work beside each other and outlive their parent.
#include "support/elements.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/collective/all_gather.hpp>
#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/barrier.hpp>
#include <hocket/group/split.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

using namespace hocket_test;
using hocket::color;
using hocket::key;

namespace {

/// The ranks that the members of `part` have in `me.comm()`, in the order of the part.
std::vector<int> members(thread_rank& me, const hocket::local::communicator& part) {
  const int own = me.rank();
  std::vector<int> all(static_cast<std::size_t>(part.size()));
  hocket::all_gather(part, std::span(&own, 1), all);
  return all;
}

int sum_of_ones(const hocket::local::communicator& comm, std::size_t size = 1) {
  const std::vector<int> ones(size, 1);
  std::vector<int> sums(size);
  hocket::all_reduce(comm, ones, sums);
  return sums.back();
}

}  // namespace

TEST_CASE("a part has the ranks of one colour, ordered by key, then by rank") {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    on_ranks(ranks, [&](thread_rank& me) {
      const auto expect = [&](color part, key order, auto color_of, auto key_of) {
        std::vector<int> expected;
        for (int each = 0; each < ranks; ++each) {
          if (color_of(each) == part.value) expected.push_back(each);
        }
        std::stable_sort(expected.begin(), expected.end(), [&](int a, int b) { return key_of(a) < key_of(b); });
        const auto made = hocket::split(me.comm(), part, order);
        me.check(members(me, made) == expected, "wrong members");
        me.check(expected[static_cast<std::size_t>(made.rank())] == me.rank(), "wrong rank");
        me.check(made.timeout() == me.comm().timeout(), "another timeout than the parent's");
      };
      const int rank = me.rank();
      const auto same = [](int) { return 0; };
      expect(color{0}, key{}, same, same);
      expect(color{0}, key{-rank}, same, [](int each) { return -each; });
      expect(
          color{rank % 2 - 5}, key{}, [](int each) { return each % 2 - 5; }, same);
      expect(
          color{rank / 3}, key{rank % 2}, [](int each) { return each / 3; }, [](int each) { return each % 2; });
      expect(
          color{rank}, key{7}, [](int each) { return each; }, same);
    });
  }
}

TEST_CASE("a mismatch between split and another call gives the lines of the callers") {
  on_ranks(3, [](thread_rank& me) {
    const auto found = me.expect(hocket::errc::mismatch, [&] {
      std::vector<float> data(300);
      if (me.rank() == 0) hocket::all_reduce(me.comm(), hocket::in_place(data));
      if (me.rank() != 0) static_cast<void>(hocket::split(me.comm(), color{0}));
    });
    const std::string message = found ? found->what() : "";
    for (const char* const part : {" in split, called at ", " in all_reduce of 300 elements of (float", "rank 0 "}) {
      me.check(message.find(part) != std::string::npos, [&] { return std::string("lacks ") + part + ": " + message; });
    }
    for (const char* const part : {"all_gather", "split_choice", "this rank was"}) {
      me.check(message.find(part) == std::string::npos, [&] { return std::string("has ") + part + ": " + message; });
    }
    me.check(message.find("split.hpp") == std::string::npos, [&] { return "names the library's line: " + message; });
  });
}

TEST_CASE("parts of parts work, and all parts work beside each other") {
  on_ranks(8, [](thread_rank& me) {
    const auto half = hocket::split(me.comm(), color{me.rank() / 4});
    const auto pair = hocket::split(half, color{half.rank() / 2}, key{-half.rank()});
    const auto across = hocket::split(me.comm(), color{me.rank() % 4});
    for (int round = 0; round < 50; ++round) {
      for (const std::size_t size : {std::size_t{1}, std::size_t{100}}) {
        me.check(sum_of_ones(pair, size) == 2, "pair");
        me.check(sum_of_ones(half, size) == 4, "half");
        me.check(sum_of_ones(across, size) == 2, "across");
        me.check(sum_of_ones(me.comm(), size) == 8, "whole");
      }
    }
    me.check(members(me, pair) == std::vector<int>({me.rank() | 1, me.rank() & ~1}), "keys do not reverse the order");
  });
}

TEST_CASE("a part outlives its parent") {
  const auto place = std::make_shared<hocket::local::world>(3);
  std::vector<int> sums(3, 0);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      std::optional parent(hocket::local::connect(place, rank));
      auto part = hocket::split(*parent, color{0});
      if (rank != 1) parent.reset();
      auto nested = hocket::split(part, color{rank == 2 ? 1 : 0});
      parent.reset();
      sums[static_cast<std::size_t>(rank)] = 10 * sum_of_ones(part, 50) + sum_of_ones(nested);
    });
  }
  for (std::thread& each : threads) each.join();
  CHECK(sums == std::vector<int>{32, 32, 31});
}

TEST_CASE("communicators can be created and destroyed hundreds of times") {
  on_ranks(4, [](thread_rank& me) {
    for (int round = 0; round < 300; ++round) {
      const auto part = hocket::split(me.comm(), color{(me.rank() + round) % 2});
      if (round % 20 == 0) me.check(sum_of_ones(part) == 2, "wrong sum");
    }
  });
}

TEST_CASE("a failed part does not affect its parent and the other parts") {
  on_ranks(4, [](thread_rank& me) {
    auto part = hocket::split(me.comm(), color{me.rank() / 2});
    if (me.rank() == 0) {
      me.expect(hocket::errc::timeout,
                [&] { hocket::barrier(part, hocket::with(hocket::timeout(std::chrono::milliseconds(20)))); });
      me.check(part.revoked(), "not revoked");
    }
    if (me.rank() >= 2) me.check(sum_of_ones(part) == 2, "the other part");
    me.check(sum_of_ones(me.comm(), 30) == 4, "the parent");
  });
}

TEST_CASE("a rank that does not take part in a split causes a timeout") {
  on_ranks(3, [](thread_rank& me) {
    if (me.rank() == 2) return;
    me.comm().set_timeout(std::chrono::milliseconds(50));
    me.expect(hocket::errc::timeout, [&] { hocket::split(me.comm(), color{0}); });
  });
}
