// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Batches and shares: all numbers of ranks use the same samples in the same order, also after restarts.
#include <hocket/core/error.hpp>
#include <hocket/data/mixture.hpp>
#include <hocket/data/order.hpp>
#include <hocket/data/share.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace {

using hocket::data::batch_sizes;
using hocket::data::cursor;
using hocket::data::positions;
using hocket::data::share;

/// The positions that `ranks` ranks use of a batch, by rank.
std::vector<std::uint64_t> used_by(int ranks, const positions& batch) {
  std::vector<std::uint64_t> used;
  for (int rank = 0; rank < ranks; ++rank) {
    const positions part = share(rank, ranks).of(batch);
    for (std::uint64_t i = part.begin; i < part.end; ++i) used.push_back(i);
  }
  return used;
}

/// Continues at 1000 random positions, each with three batches of any size for any number of ranks.
template <class Order, class Sample>
void check_restarts(const Order& order, const std::vector<Sample>& expected) {
  std::mt19937_64 random(1);
  for (int restart = 0; restart < 1000; ++restart) {
    const batch_sizes sizes(order.size(), 1 + random() % 40);
    std::size_t next = static_cast<std::size_t>(random() % expected.size());
    cursor at{next / order.size(), next % order.size()};
    for (int step = 0; step < 3; ++step) {
      const int ranks = 1 + static_cast<int>(random() % 17);
      auto samples = order.epoch(at.epoch);
      for (const std::uint64_t position : used_by(ranks, sizes.at(at))) {
        if (next == expected.size()) break;
        if (!(samples[position] == expected[next])) FAIL("position " << next << " in restart " << restart);
        ++next;
      }
      at = sizes.after(at);
      if (next < expected.size()) REQUIRE(at.epoch * order.size() + at.position == next);
    }
  }
}

struct two_numbers {
  int rank() const { return 3; }
  int size() const { return 5; }
};

}  // namespace

TEST_CASE("ranks divide each batch without gap or repetition, and as evenly as possible") {
  for (int ranks = 1; ranks <= 17; ++ranks) {
    for (std::uint64_t size = 0; size <= 40; ++size) {
      const positions batch{100, 100 + size};
      const auto used = used_by(ranks, batch);
      REQUIRE(used.size() == size);
      for (std::uint64_t i = 0; i < size; ++i) REQUIRE(used[static_cast<std::size_t>(i)] == 100 + i);
      const std::uint64_t most = share(0, ranks).of(batch).size(), least = share(ranks - 1, ranks).of(batch).size();
      CHECK(most - least == (size % static_cast<std::uint64_t>(ranks) == 0 ? 0U : 1U));
    }
  }
  CHECK(share(16, 17).of({0, 5}) == positions{5, 5});
  CHECK(share(two_numbers()).rank() == 3);
  CHECK(share(two_numbers()).ranks() == 5);
}

TEST_CASE("any number of ranks uses the same samples, also when it changes at any position") {
  constexpr std::uint64_t samples = 1009;
  const hocket::data::order order(samples, 8);
  std::vector<std::uint64_t> expected;  // one rank, three epochs, without a restart
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    for (std::uint64_t i = 0; i < samples; ++i) expected.push_back(order.epoch(epoch)[i]);
  }
  check_restarts(order, expected);
}

TEST_CASE("any number of ranks uses the same samples of a mixture") {
  hocket::data::mixture mixture({hocket::data::order(11, 8), hocket::data::order(500, 9)},
                                std::vector<std::uint64_t>{1, 4}, 2);
  mixture.change(1000, {2, 3});
  std::vector<hocket::data::mixed_sample> expected;
  auto positions = mixture.epoch();
  for (std::uint64_t i = 0; i < 3000; ++i) expected.push_back(positions[i]);
  check_restarts(mixture, expected);
}

TEST_CASE("an epoch has each position once, and its last batch is smaller") {
  for (std::uint64_t samples = 1; samples <= 50; ++samples) {
    for (std::uint64_t batch = 1; batch <= 20; ++batch) {
      const batch_sizes sizes(samples, batch);
      std::uint64_t position = 0, batches = 0;
      for (cursor at{4, 0}; at.epoch == 4; at = sizes.after(at)) {
        const positions found = sizes.at(at);
        REQUIRE(found.begin == position);
        REQUIRE(found.size() == std::min(batch, samples - position));
        position = found.end;
        ++batches;
      }
      CHECK(position == samples);
      CHECK(batches == (samples + batch - 1) / batch);
    }
  }
  const batch_sizes sizes(10, 4);
  CHECK(sizes.after({4, 8}) == cursor{5, 0});
  CHECK(sizes.normal({4, 10}) == cursor{5, 0});
  CHECK(sizes.at({4, 10}) == positions{0, 4});
  CHECK(sizes.after({4, 10}) == cursor{5, 4});
}

TEST_CASE("ranks, batches and cursors that can't exist are refused") {
  CHECK_THROWS_WITH(share(3, 3), Catch::Contains("rank 3 is not one of 3 ranks"));
  CHECK_THROWS_WITH(share(-1, 3), Catch::Contains("rank -1"));
  CHECK_THROWS_WITH(share(0, 0), Catch::Contains("0 ranks"));
  CHECK_THROWS_WITH(batch_sizes(0, 1), Catch::Contains("no samples"));
  CHECK_THROWS_WITH(batch_sizes(1, 0), Catch::Contains("at least one sample"));
  CHECK_THROWS_WITH(batch_sizes(10, 4).at({0, 11}), Catch::Contains("position 11 of an epoch of 10 samples"));
}
