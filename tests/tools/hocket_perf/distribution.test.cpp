// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: cli11
// How hocket-perf distributes elements over blocks of different lengths.
#include "support/catch.hpp"
#include "support/text.hpp"

#include "../../../tools/hocket-perf/distribution.hpp"

#include <cstddef>
#include <numeric>
#include <vector>

using perf::block_lengths;
using perf::busiest_share;
using perf::distribution;

TEST_CASE("hocket-perf: blocks have all elements together") {
  for (const auto how : {distribution::even, distribution::linear, distribution::single}) {
    for (const int ranks : {1, 2, 3, 7, 64}) {
      for (const std::size_t total : {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{1'000'003}}) {
        const auto lengths = block_lengths(how, ranks, total);
        CHECK(lengths.size() == static_cast<std::size_t>(ranks));
        CHECK(std::accumulate(lengths.begin(), lengths.end(), std::size_t{0}) == total);
      }
    }
  }
}

TEST_CASE("hocket-perf: a linear distribution grows with the rank") {
  CHECK(block_lengths(distribution::linear, 4, 100) == std::vector<std::size_t>{10, 20, 30, 40});
  CHECK(block_lengths(distribution::linear, 3, 3) == std::vector<std::size_t>{0, 1, 2});
  CHECK(block_lengths(distribution::single, 3, 9) == std::vector<std::size_t>{0, 0, 9});
  CHECK(block_lengths(distribution::even, 3, 10) == std::vector<std::size_t>{4, 3, 3});
}

TEST_CASE("hocket-perf: with equal blocks, the busiest rank's share is the usual factor of bus bandwidth") {
  const auto equal = block_lengths(distribution::even, 4, 400);
  CHECK(busiest_share(perf::collective::all_gather_v, equal) == Approx(0.75));
  CHECK(busiest_share(perf::collective::reduce_scatter_v, equal) == Approx(0.75));
  CHECK(busiest_share(perf::collective::all_to_all_v, equal) == Approx(0.75));
}

TEST_CASE("hocket-perf: the busiest rank lacks the most, or receives the longest block from all others") {
  const std::vector<std::size_t> lengths{10, 20, 30, 40};
  CHECK(busiest_share(perf::collective::all_gather_v, lengths) == Approx(0.9));
  CHECK(busiest_share(perf::collective::reduce_scatter_v, lengths) == Approx(0.9));
  CHECK(busiest_share(perf::collective::all_to_all_v, lengths) == Approx(1.2));
  CHECK(busiest_share(perf::collective::all_gather_v, {0, 0}) == 0);
}

TEST_CASE("hocket-perf: distributions are described for a number of ranks") {
  CHECK(hocket_test::contains(perf::describe(distribution::linear, 4), "r + 1 of 10 parts"));
  CHECK(hocket_test::contains(perf::describe(distribution::linear, 4), "rank 3 is 4 times as long as that of rank 0"));
  CHECK(hocket_test::contains(perf::describe(distribution::single, 4), "rank 3's block has all elements"));
}
