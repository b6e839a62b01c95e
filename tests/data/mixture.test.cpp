// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Mixtures: exact shares in each block, each sample of a source once per epoch of it, and changes of weights.
#include <hocket/core/error.hpp>
#include <hocket/data/mixture.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

using hocket::data::mixed_sample;
using hocket::data::mixture;
using weights_type = std::vector<std::uint64_t>;

std::vector<hocket::data::order> orders_of(const weights_type& sizes) {
  std::vector<hocket::data::order> result;
  for (std::size_t i = 0; i < sizes.size(); ++i) result.emplace_back(sizes[i], 100 + i);
  return result;
}

std::vector<mixed_sample> first_of(const mixture& from, std::uint64_t count) {
  auto view = from.epoch();
  std::vector<mixed_sample> result;
  for (std::uint64_t i = 0; i < count; ++i) result.push_back(view[i]);
  return result;
}

/// How often each source occurs in `count` samples from `begin` on.
weights_type counts_in(const std::vector<mixed_sample>& all, std::size_t begin, std::size_t count,
                       std::size_t sources) {
  weights_type counts(sources);
  for (std::size_t i = begin; i < begin + count; ++i) ++counts[all[i].source];
  return counts;
}

/// Checks that each source begins an epoch when the one before has ended, and has each sample once in an epoch.
void check_epochs(const std::vector<mixed_sample>& all, const weights_type& sizes) {
  std::map<std::pair<std::size_t, std::uint64_t>, std::set<std::uint64_t>> found;
  std::map<std::size_t, std::uint64_t> last_epoch;
  for (const mixed_sample& each : all) {
    REQUIRE(each.sample < sizes[each.source]);
    REQUIRE(found[{each.source, each.epoch}].insert(each.sample).second);
    last_epoch[each.source] = std::max(last_epoch[each.source], each.epoch);
  }
  for (const auto& [which, samples] : found) {
    if (which.second + 2 <= last_epoch[which.first]) CHECK(samples.size() == sizes[which.first]);
  }
}

}  // namespace

TEST_CASE("each block has exactly its share of each source, and sources repeat epoch by epoch") {
  const std::vector<std::pair<weights_type, weights_type>> cases{// sizes, weights
                                                                 {{10}, {1}},
                                                                 {{7, 50}, {3, 1}},
                                                                 {{5, 11, 23}, {2, 0, 5}},
                                                                 {{1, 100, 3, 8}, {1, 6, 2, 1}}};
  for (const auto& [sizes, weights] : cases) {
    std::size_t sum = 0;
    for (const std::uint64_t each : weights) sum += static_cast<std::size_t>(each);
    const auto all = first_of(mixture(orders_of(sizes), weights, 6), 200 * sum);
    std::set<std::vector<std::size_t>> arrangements;
    for (std::size_t block = 0; block < 200; ++block) {
      REQUIRE(counts_in(all, block * sum, sum, sizes.size()) == weights);
      std::vector<std::size_t> sources;
      for (std::size_t i = 0; i < sum; ++i) sources.push_back(all[block * sum + i].source);
      arrangements.insert(sources);
    }
    CHECK(arrangements.size() >= std::min<std::size_t>(sum, 4));  // blocks differ
    check_epochs(all, sizes);
  }
}

TEST_CASE("a change of weights takes effect at the end of a block, and is part of the recipe") {
  const weights_type sizes{13, 29};
  mixture tested(orders_of(sizes), weights_type{3, 1}, 5);
  const auto before = first_of(tested, 40);
  CHECK(tested.change(41, {1, 4}) == 44);
  CHECK(tested.change(44 + 5 * 30, {0, 2}) == 44 + 5 * 30);
  CHECK(tested.recipe() == "0 3 1;44 1 4;194 0 2");
  const auto all = first_of(tested, 400);
  CHECK(std::equal(before.begin(), before.end(), all.begin()));
  for (std::size_t i = 0; i < 44; i += 4) CHECK(counts_in(all, i, 4, 2) == weights_type{3, 1});
  for (std::size_t i = 44; i < 194; i += 5) CHECK(counts_in(all, i, 5, 2) == weights_type{1, 4});
  CHECK(counts_in(all, 194, 206, 2) == weights_type{0, 206});
  check_epochs(all, sizes);

  CHECK(first_of(mixture(orders_of(sizes), tested.recipe(), 5), 400) == all);
  CHECK(tested.change(194, {1, 1}) == 194);  // replaces the one before, of which nothing was used
  CHECK(tested.recipe() == "0 3 1;44 1 4;194 1 1");
}

TEST_CASE("any element of a mixture is found at once, and equals that of the sequence") {
  const weights_type sizes{13, 29, 1000};
  mixture tested(orders_of(sizes), weights_type{3, 1, 4}, 5);
  tested.change(100, {1, 1, 1});
  const auto all = first_of(tested, 2000);
  std::mt19937_64 random(1);
  auto view = tested.epoch();
  for (int i = 0; i < 1000; ++i) {
    const auto at = static_cast<std::size_t>(random() % all.size());
    if (!(view[at] == all[at])) FAIL("position " << at);
  }

  const auto begin = std::chrono::steady_clock::now();
  const mixture large(orders_of({std::uint64_t{1'000'000'000'000}, 7}), weights_type{99, 1}, 5);
  auto far = large.epoch();
  const mixed_sample found = far[1'000'000'000'000];
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(10));
  CHECK(found.epoch == (found.source == 0 ? 0 : 10'000'000'000 / 7));
}

TEST_CASE("mixtures that can't exist are refused") {
  const auto make = [](const weights_type& sizes, const weights_type& weights) {
    return mixture(orders_of(sizes), weights, 1);
  };
  CHECK_THROWS_WITH(make({1, 2}, {1}), Catch::Contains("2 sources needs one weight for each, and 1 are given"));
  CHECK_THROWS_WITH(make({}, {}), Catch::Contains("0 sources"));
  CHECK_THROWS_WITH(make({1, 2}, {0, 0}), Catch::Contains("at least one weight"));
  CHECK_THROWS_WITH(make({1, 0}, {1, 1}), Catch::Contains("source 1 has no samples"));
  CHECK_THROWS_WITH(make({1, 2}, {1, mixture::most_weight}), Catch::Contains("more than 2^32"));
  mixture tested = make({1, 2}, {1, 1});
  tested.change(10, {2, 1});
  CHECK_THROWS_WITH(tested.change(9, {1, 1}), Catch::Contains("changed at position 10 already"));
  CHECK_THROWS_WITH(tested.change(13, {0, 0}), Catch::Contains("at least one weight"));
  CHECK(tested.recipe() == "0 1 1;10 2 1");
  CHECK_NOTHROW(tested.epoch(0));
  for (const std::uint64_t epoch : {std::uint64_t{1}, ~std::uint64_t{0}})
    CHECK_THROWS_WITH(tested.epoch(epoch), Catch::Contains("epoch " + std::to_string(epoch) + " of a mixture"));
}

TEST_CASE("a damaged recipe is refused, with the byte") {
  const auto read = [](const std::string& recipe) { return mixture(orders_of({10, 10}), recipe, 1).recipe(); };
  for (const char* const valid : {"0 1 1", "0 3 1;400 1 1", "0 0 7;7 1 0;9 5 5"}) CHECK(read(valid) == valid);
  CHECK_THROWS_WITH(read(""), Catch::Contains("no number at byte 0"));
  CHECK_THROWS_WITH(read("0 1 1;"), Catch::Contains("no number at byte 6"));
  CHECK_THROWS_WITH(read("0 1x 1"), Catch::Contains("no number at byte 2"));
  CHECK_THROWS_WITH(read("0 1 99999999999999999999"), Catch::Contains("no number at byte 4"));
  CHECK_THROWS_WITH(read("0 1 1;3 1 1"), Catch::Contains("position 3, where no block"));
  CHECK_THROWS_WITH(read("4 1 1"), Catch::Contains("position 4, where no block"));
  CHECK_THROWS_WITH(read("0 1 1;4 1 1;2 1 1"), Catch::Contains("position 4 already"));
  CHECK_THROWS_WITH(read("0 1"), Catch::Contains("one weight for each"));
}
