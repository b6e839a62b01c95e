// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Balanced divisions and packs, against an exhaustive search, and against samples in order.
#include <hocket/core/error.hpp>
#include <hocket/data/balance.hpp>
#include <hocket/data/pack.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace hocket::data;

/// The least cost of the largest part over all divisions whose counts are as `counts` states.
class exhaustive_search {
 public:
  exhaustive_search(std::vector<double> costs, std::size_t parts, part_counts counts)
      : costs_(std::move(costs)), sums_(parts), counts_(parts), most_samples_(costs_.size()), most_full_(parts) {
    if (counts == part_counts::equal) {
      most_samples_ = (costs_.size() + parts - 1) / parts;
      if (costs_.size() % parts != 0) most_full_ = costs_.size() % parts;
    }
    std::sort(costs_.rbegin(), costs_.rend());
    for (const double each : costs_) best_ += each;
    add(0);
  }
  double best() const { return best_; }

 private:
  void add(std::size_t sample) {
    const double largest = *std::max_element(sums_.begin(), sums_.end());
    if (largest >= best_) return;
    if (sample == costs_.size()) {
      best_ = largest;
      return;
    }
    for (std::size_t p = 0; p < sums_.size(); ++p) {
      if (counts_[p] == most_samples_ || (counts_[p] + 1 == most_samples_ && full_parts() == most_full_)) continue;
      const double before = sums_[p];
      sums_[p] += costs_[sample];
      ++counts_[p];
      add(sample + 1);
      --counts_[p];
      sums_[p] = before;
      if (before == 0) break;  // the other empty parts are alike
    }
  }

  std::size_t full_parts() const {
    return static_cast<std::size_t>(std::count(counts_.begin(), counts_.end(), most_samples_));
  }

  std::vector<double> costs_, sums_;
  std::vector<std::size_t> counts_;
  std::size_t most_samples_, most_full_;  ///< in a part; parts with that many
  double best_ = 1;
};

bool has_all_once(const division& parts, std::size_t samples) {
  std::vector<int> found(samples);
  for (const auto& part : parts) {
    for (const std::size_t each : part) ++found.at(each);
  }
  return std::all_of(found.begin(), found.end(), [](int count) { return count == 1; });
}

std::size_t count_difference(const division& parts) {
  const auto [least, most] =
      std::minmax_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return most->size() - least->size();
}

/// Lengths of documents: many short ones, and few long ones.
std::vector<std::uint64_t> document_lengths(std::size_t count, std::uint64_t most, std::mt19937_64& random) {
  std::lognormal_distribution<double> lengths(6, 1);
  std::vector<std::uint64_t> result;
  for (std::size_t i = 0; i < count; ++i)
    result.push_back(std::min(most, 1 + static_cast<std::uint64_t>(lengths(random))));
  return result;
}

std::vector<double> costs_of(const std::vector<std::uint64_t>& lengths, const cost_model& model) {
  std::vector<double> result;
  for (const std::uint64_t each : lengths) result.push_back(model(each));
  return result;
}

std::uint64_t tokens_in(const std::vector<std::size_t>& pack, const std::vector<std::uint64_t>& lengths) {
  std::uint64_t sum = 0;
  for (const std::size_t each : pack) sum += lengths[each];
  return sum;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
constexpr std::size_t scale = 20;  // of the samples, in a build that runs slowly
#else
constexpr std::size_t scale = 1;
#endif

}  // namespace

TEST_CASE("balanced parts are close to the best ones of 500 small cases, and never worse than in order") {
  for (const part_counts counts : {part_counts::any, part_counts::equal}) {
    std::mt19937_64 random(7);
    double sum = 0, worst = 1;
    for (int i = 0; i < 500; ++i) {
      const std::size_t samples = 4 + random() % 8, parts = 2 + random() % 3;
      const auto costs = costs_of(document_lengths(samples, 4096, random), {1, i % 2 == 0 ? 0 : 0.001});
      const division found = balance(costs, parts, counts);
      REQUIRE(has_all_once(found, samples));
      const double largest = largest_cost(found, costs);
      CHECK(largest <= largest_cost(divide_in_order(samples, parts), costs));
      if (counts == part_counts::equal) CHECK(count_difference(found) <= 1);
      const double ratio = largest / exhaustive_search(costs, parts, counts).best();
      CHECK(ratio >= 1 - 1e-9);  // the search misses no division
      sum += ratio;
      worst = std::max(worst, ratio);
    }
    INFO((counts == part_counts::equal ? "equal counts: mean " : "mean ") << sum / 500 << ", worst " << worst);
    CHECK(sum / 500 <= 1.005);
    CHECK(worst <= 1.1);
  }
}

TEST_CASE("divisions have the number of parts, however few or equal the samples are") {
  for (const part_counts counts : {part_counts::any, part_counts::equal}) {
    for (std::size_t parts = 1; parts <= 9; ++parts) {
      for (std::size_t samples = 0; samples <= 40; ++samples) {
        for (const double cost : {0.0, 1.0}) {
          const std::vector<double> costs(samples, cost);
          const division found = balance(costs, parts, counts);
          REQUIRE(found.size() == parts);
          REQUIRE(has_all_once(found, samples));
          if (cost > 0 || counts == part_counts::equal) CHECK(count_difference(found) <= 1);
        }
      }
    }
  }
  CHECK_THROWS_WITH(balance({}, 0), Catch::Contains("0 parts"));
}

TEST_CASE("costs that are no finite numbers of at least 0 are refused, and others are not") {
  using limits = std::numeric_limits<double>;
  for (const double wrong : {limits::quiet_NaN(), -limits::quiet_NaN(), limits::infinity(), -limits::infinity(), -1.0,
                             -limits::denorm_min()}) {
    for (std::size_t at = 0; at < 5; ++at) {
      std::vector<double> costs{3, 1, 4, 1, 5};
      costs[at] = wrong;
      for (const part_counts counts : {part_counts::any, part_counts::equal}) {
        CHECK_THROWS_WITH(balance(costs, 2, counts),
                          Catch::Contains("the cost of sample " + std::to_string(at) + " is ") &&
                              Catch::Contains("finite and at least 0"));
      }
    }
  }
  CHECK_NOTHROW(balance(std::vector<double>{0.0, -0.0, limits::denorm_min(), limits::max()}, 2));
  CHECK_THROWS_WITH(pack(std::vector<std::uint64_t>{1, 2}, 2, 2, {.per_token = -1}), Catch::Contains("at least 0"));
}

TEST_CASE("many samples are balanced among many ranks within a second") {
  std::mt19937_64 random(3);
  const auto lengths = document_lengths(100'000 / scale, 4096, random);
  const auto costs = costs_of(lengths, {1, 0.001});
  for (const part_counts counts : {part_counts::any, part_counts::equal}) {
    const auto begin = std::chrono::steady_clock::now();
    const division found = balance(costs, 64, counts);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(1));
    double sum = 0;
    for (const double each : costs) sum += each;
    CHECK(largest_cost(found, costs) < 1.001 * sum / 64);
  }
}

TEST_CASE("packs keep the budget, and are few") {
  std::mt19937_64 random(5);
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t budget = 1 + random() % 3000;
    const auto lengths = document_lengths(random() % 300, budget, random);
    const division packs = pack(lengths, budget);
    REQUIRE(has_all_once(packs, lengths.size()));
    std::uint64_t tokens = 0;
    for (const auto& each : packs) {
      REQUIRE(tokens_in(each, lengths) <= budget);
      REQUIRE_FALSE(each.empty());
      tokens += tokens_in(each, lengths);
    }
    CHECK(packs.size() <= pack_in_order(lengths, budget).size());
    // First fit by descending length needs at most 11/9 of the best and 6/9 of a pack; the best has no more room than
    // this.
    const std::uint64_t best = (tokens + budget - 1) / budget;
    if (std::all_of(lengths.begin(), lengths.end(), [&](std::uint64_t each) { return each <= budget / 10; }))
      CHECK(9 * packs.size() <= 11 * best + 6);
  }
  CHECK(pack(std::vector<std::uint64_t>{}, 10).empty());
  CHECK(pack(std::vector<std::uint64_t>{6, 4, 5, 5, 0}, 10).size() == 2);
  CHECK_THROWS_WITH(pack(std::vector<std::uint64_t>{1, 11}, 10), Catch::Contains("sequence 1 has 11 tokens"));
}

TEST_CASE("a million sequences are packed within a second") {
  std::mt19937_64 random(9);
  const auto lengths = document_lengths(1'000'000 / scale, 8192, random);
  const auto begin = std::chrono::steady_clock::now();
  const division packs = pack(lengths, 8192);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(1));
  std::uint64_t tokens = 0;
  for (const std::uint64_t each : lengths) tokens += each;
  CHECK(static_cast<double>(packs.size()) < 1.01 * static_cast<double>(tokens) / 8192 + 1);
}

TEST_CASE("all ranks get the same number of microbatches, of about equal cost in sum") {
  std::mt19937_64 random(11);
  const cost_model model{1, 0.001};
  for (std::size_t ranks = 1; ranks <= 17; ++ranks) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, ranks, std::size_t{2000}}) {
      const auto lengths = document_lengths(count, 2048, random);
      const rank_microbatches found = pack(lengths, 2048, ranks, model);
      REQUIRE(found.size() == ranks);
      division all;
      double largest = 0, sum = 0;
      for (const division& of_rank : found) {
        REQUIRE(of_rank.size() == found[0].size());
        double cost = 0;
        for (const auto& each : of_rank) {
          REQUIRE(tokens_in(each, lengths) <= 2048);
          for (const std::size_t sequence : each) cost += model(lengths[sequence]);
          all.push_back(each);
        }
        largest = std::max(largest, cost);
        sum += cost;
      }
      CHECK(has_all_once(all, count));
      if (count == 2000) CHECK(largest < 1.05 * sum / static_cast<double>(ranks));
      if (count == 1) CHECK(found[0].size() == 1);  // also on the ranks that have no sequence
    }
  }
  CHECK_THROWS_WITH(pack({}, 1, 0), Catch::Contains("0 ranks"));
}
