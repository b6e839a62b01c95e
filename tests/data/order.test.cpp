// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Orders of samples: each sample once per epoch, shards within their groups, and what a random order looks like.
#include <hocket/core/error.hpp>
#include <hocket/data/order.hpp>
#include <hocket/data/permutation.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <vector>

namespace {

using hocket::data::epoch_order;
using hocket::data::equal_shards;
using hocket::data::listed_shards;
using hocket::data::order;
using hocket::data::permutation;
using numbers = std::vector<std::uint64_t>;

template <class Sequence>
numbers listed(const Sequence& sequence) {
  numbers result(static_cast<std::size_t>(sequence.size()));
  for (std::uint64_t i = 0; i < sequence.size(); ++i) result[static_cast<std::size_t>(i)] = sequence[i];
  return result;
}

bool has_each_once(numbers found) {
  std::sort(found.begin(), found.end());
  numbers expected(found.size());
  std::iota(expected.begin(), expected.end(), 0U);
  return found == expected;
}

/// How far counts are from equal ones, in standard deviations of chi-square: 5 or more does not happen by chance.
double deviation(const numbers& counts) {
  const double cells = static_cast<double>(counts.size());
  const double expected = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0})) / cells;
  double chi_square = 0;
  for (const std::uint64_t each : counts) {
    const double difference = static_cast<double>(each) - expected;
    chi_square += difference * difference / expected;
  }
  return (chi_square - (cells - 1)) / std::sqrt(2 * (cells - 1));
}

/// The shard of each sample of some shards.
numbers shard_of_samples(const numbers& sizes) {
  numbers result;
  for (std::size_t s = 0; s < sizes.size(); ++s) result.insert(result.end(), static_cast<std::size_t>(sizes[s]), s);
  return result;
}

}  // namespace

TEST_CASE("a permutation has each number once, and finds the index of each") {
  std::vector<std::uint64_t> sizes(2001);
  std::iota(sizes.begin(), sizes.end(), 0U);
  for (std::uint64_t power = 4096; power <= 65536; power *= 4) {
    for (const std::uint64_t size : {power - 1, power, power + 1}) sizes.push_back(size);
  }
  for (const std::uint64_t size : sizes) {
    const permutation tested(size, 17 * size);
    const numbers all = listed(tested);
    if (!has_each_once(all)) FAIL("size " << size);
    for (std::uint64_t i = 0; i < size; i += 1 + size / 100) {
      if (tested.index_of(tested[i]) != i) FAIL("index of element " << i << " of " << size);
    }
  }
}

TEST_CASE("elements of permutations of any size are within it, and lead back to their index") {
  for (const std::uint64_t size : {(std::uint64_t{1} << 32) - 1, (std::uint64_t{1} << 32) + 1,
                                   std::uint64_t{1'000'000'000'007}, permutation::most - 1, permutation::most}) {
    const permutation tested(size, 5);
    for (std::uint64_t i = 0; i < 1000; ++i) {
      for (const std::uint64_t index : {i, size / 3 + i, size - 1 - i}) {
        const std::uint64_t value = tested[index];
        if (value >= size || tested.index_of(value) != index) FAIL("element " << index << " of " << size);
      }
    }
  }
  CHECK_THROWS_WITH(permutation(permutation::most + 1, 0), Catch::Contains("2^62"));
}

TEST_CASE("all permutations of few elements are equally likely") {
  for (const std::uint64_t size : {2U, 3U, 4U, 5U, 6U}) {
    std::map<numbers, std::uint64_t> counts;
    for (std::uint64_t key = 0; key < 36'000; ++key) ++counts[listed(permutation(size, key))];
    std::uint64_t all = 1;
    for (std::uint64_t i = 2; i <= size; ++i) all *= i;
    REQUIRE(counts.size() == all);
    numbers values;
    for (const auto& [each, count] : counts) values.push_back(count);
    CAPTURE(size);
    CHECK(std::abs(deviation(values)) < 5);
  }
}

TEST_CASE("each element is equally likely in each place, after each other element, and in the next epoch") {
  for (const std::uint64_t size : {13U, 64U, 100U}) {
    const auto n = static_cast<std::size_t>(size);
    numbers places(n * n), steps(n - 1), repeats(n);
    for (std::uint64_t epoch = 0; epoch < 2000; ++epoch) {
      const order tested(size, 3);
      const numbers all = listed(tested.epoch(epoch)), next = listed(tested.epoch(epoch + 1));
      for (std::size_t i = 0; i < n; ++i) {
        ++places[i * n + static_cast<std::size_t>(all[i])];
        if (i > 0) ++steps[static_cast<std::size_t>((all[i] + size - all[i - 1]) % size - 1)];
        ++repeats[static_cast<std::size_t>((all[i] + size - next[i]) % size)];
      }
    }
    CAPTURE(size);
    CHECK(deviation(places) < 5);
    CHECK(deviation(steps) < 5);
    CHECK(deviation(repeats) < 5);
  }
}

TEST_CASE("in a large permutation, neighbours are far apart, and all parts of it are alike") {
  constexpr std::uint64_t size = 1'000'003, cells = 100;
  const permutation tested(size, 9);
  numbers steps(cells), parts(cells * cells);
  for (std::uint64_t i = 1; i < size; ++i) {
    const std::uint64_t step = (tested[i] + size - tested[i - 1]) % size;
    ++steps[static_cast<std::size_t>(step * cells / size)];
    ++parts[static_cast<std::size_t>(i * cells / size * cells + tested[i] * cells / size)];
  }
  CHECK(deviation(steps) < 5);
  CHECK(deviation(parts) < 5);
}

TEST_CASE("shards follow group by group, and each sample comes once") {
  struct grouping {
    numbers sizes;
    std::uint64_t shards_per_group;
  };
  std::vector<grouping> cases;
  for (const std::uint64_t samples : {0U, 1U, 9U, 10U, 11U, 95U, 100U}) {
    for (const std::uint64_t per_group : {1U, 3U, 10U, 11U}) {
      const auto epoch = order(equal_shards{samples, 10, per_group}, 4).epoch(2);
      CHECK(has_each_once(listed(epoch)));
      numbers sizes(static_cast<std::size_t>(samples / 10), 10);
      if (samples % 10 != 0) sizes.push_back(samples % 10);
      cases.push_back({sizes, per_group});
    }
  }
  cases.push_back({{3, 0, 7, 1, 1, 12, 0, 5}, 3});
  cases.push_back({{0, 0}, 1});
  for (const grouping& each : cases) {
    const order tested(listed_shards{each.sizes, each.shards_per_group}, 4);
    const numbers shards = shard_of_samples(each.sizes);
    for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
      const epoch_order now = tested.epoch(epoch);
      const numbers all = listed(now);
      REQUIRE(has_each_once(all));
      std::set<std::uint64_t> used;
      for (std::uint64_t group = 0; group < now.groups(); ++group) {
        const numbers of_group = now.shards_of(group);
        CHECK(of_group.size() <= each.shards_per_group);
        for (const std::uint64_t shard : of_group) CHECK(used.insert(shard).second);
      }
      CHECK(used.size() == each.sizes.size());
      std::uint64_t last = 0;
      for (std::size_t i = 0; i < all.size(); ++i) {
        const std::uint64_t group = now.group_at(i);
        CHECK(group >= last);
        last = group;
        const numbers of_group = now.shards_of(group);
        CHECK(std::count(of_group.begin(), of_group.end(), shards[static_cast<std::size_t>(all[i])]) == 1);
      }
    }
  }
}

TEST_CASE("equal shards have the same order, computed or listed") {
  for (const std::uint64_t samples : {30U, 34U, 101U}) {
    numbers sizes(static_cast<std::size_t>(samples / 10), 10);
    if (samples % 10 != 0) sizes.push_back(samples % 10);
    for (std::uint64_t epoch = 0; epoch < 10; ++epoch) {
      CHECK(listed(order(equal_shards{samples, 10, 2}, 1).epoch(epoch)) ==
            listed(order(listed_shards{sizes, 2}, 1).epoch(epoch)));
    }
  }
}

TEST_CASE("seed and epoch determine the order, which is the same on all machines") {
  CHECK(listed(order(10, 0).epoch(0)) == numbers{5, 1, 8, 6, 3, 2, 9, 0, 4, 7});
  CHECK(listed(order(10, 0).epoch(1)) == numbers{8, 9, 1, 2, 5, 7, 6, 0, 4, 3});
  CHECK(listed(order(10, 1).epoch(0)) == numbers{8, 5, 0, 9, 1, 7, 3, 6, 4, 2});
  CHECK(listed(order(equal_shards{10, 3, 2}, 0).epoch(0)) == numbers{6, 8, 5, 3, 4, 7, 2, 0, 1, 9});
  CHECK(order(2'000'000'000'000, 42).epoch(7)[1'000'000'000'000] == 1875215203188);
}

TEST_CASE("a position is found at once, however far it is") {
  const auto begin = std::chrono::steady_clock::now();
  const order whole(std::uint64_t{3'000'000'000'000}, 1);
  const order grouped(equal_shards{std::uint64_t{3'000'000'000'001}, 100'000, 64}, 1);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    sum += whole.epoch(5)[1'000'000'000'000 + i];
    sum += grouped.epoch(5)[1'000'000'000'000 + i];
  }
  const auto took = std::chrono::steady_clock::now() - begin;
  CHECK(sum > 0);
  CHECK(took < std::chrono::milliseconds(10));  // 200 positions; a search from the begin would take minutes
}

TEST_CASE("an order that can't exist is refused") {
  CHECK_THROWS_WITH(order(permutation::most + 1, 0), Catch::Contains("at most 2^62 samples"));
  CHECK_THROWS_WITH(order(equal_shards{10, 0, 1}, 0), Catch::Contains("at least one sample"));
  CHECK_THROWS_WITH(order(equal_shards{10, 1, 0}, 0), Catch::Contains("at least one shard"));
  CHECK_THROWS_WITH(order(listed_shards{{permutation::most, 1}, 1}, 0), Catch::Contains("at most 2^62 samples"));
}
