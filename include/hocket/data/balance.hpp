// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Divides samples of different cost among ranks, so that the rank with the most work has as little as possible: the
/// others wait for it in each step.
///
/// The method is that of Karmarkar and Karp, by largest differences. At first each sample is a division of its own: one
/// part has the sample, and the others are empty. Then the two divisions whose largest and smallest part differ most
/// are joined, the largest part of one with the smallest part of the other, until one division is left. Last, samples
/// of the largest part are exchanged with samples of others while that makes it smaller, which matters if counts must
/// be equal.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace data {

/// What a sequence costs: some work is proportional to its length, and that of attention to the square of its length.
/// The unit is the caller's.
struct cost_model {
  double per_token = 1;
  double per_token_squared = 0;

  double operator()(std::uint64_t length) const noexcept {
    const auto tokens = static_cast<double>(length);
    return per_token * tokens + per_token_squared * (tokens * tokens);
  }
};

/// Samples by part, each as its index, in ascending order.
using division = std::vector<std::vector<std::size_t>>;

/// How many samples the parts have: any number, or numbers that differ by one at most.
enum class part_counts : unsigned char { any, equal };

/// Returns the largest sum of costs of a part.
inline double largest_cost(const division& parts, std::span<const double> costs) noexcept {
  double largest = 0;
  for (const auto& part : parts) {
    double sum = 0;
    for (const std::size_t each : part) sum += costs[each];
    largest = std::max(largest, sum);
  }
  return largest;
}

/// Returns consecutive samples in parts of equal counts, or with one more in the first ones.
inline division divide_in_order(std::size_t samples, std::size_t parts) {
  division result(parts);
  std::size_t next = 0;
  for (std::size_t p = 0; p < parts; ++p) {
    result[p].resize(samples / parts + (p < samples % parts ? 1 : 0));
    std::iota(result[p].begin(), result[p].end(), next);
    next += result[p].size();
  }
  return result;
}

namespace detail {

class largest_differencing {
 public:
  largest_differencing(std::span<const double> costs, std::size_t parts)
      : costs_(costs), parts_(parts), next_(costs.size(), none) {}

  division divide(part_counts counts) {
    if (counts == part_counts::any) add_single_samples();
    else add_equal_counts();
    while (heap_.size() > 1) join_two();
    return listed();
  }

 private:
  static constexpr std::size_t none = ~std::size_t{0};

  /// One part of a division: a linked list of samples.
  struct part {
    double cost;
    std::size_t first, last;
  };
  /// The parts that have samples, by descending cost.
  using partial = std::vector<part>;

  /// A division in the heap. Equal differences are ordered by index, so that all ranks do the same.
  struct entry {
    double difference;
    std::size_t index;
    bool operator<(const entry& other) const noexcept {
      return difference != other.difference ? difference < other.difference : index > other.index;
    }
  };

  static bool costs_more(const part& a, const part& b) noexcept {
    return a.cost != b.cost ? a.cost > b.cost : a.first < b.first;
  }

  std::vector<std::size_t> by_descending_cost() const {
    std::vector<std::size_t> order(costs_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return costs_[a] != costs_[b] ? costs_[a] > costs_[b] : a < b; });
    return order;
  }

  void add_single_samples() {
    for (const std::size_t each : by_descending_cost()) push({{costs_[each], each, each}});
  }

  /// Each division has one sample in each part, so that joining them leaves the counts equal. The last one may have
  /// fewer.
  void add_equal_counts() {
    const std::vector<std::size_t> order = by_descending_cost();
    for (std::size_t begin = 0; begin < order.size(); begin += parts_) {
      partial added;
      for (std::size_t i = begin; i < std::min(order.size(), begin + parts_); ++i)
        added.push_back({costs_[order[i]], order[i], order[i]});
      push(std::move(added));
    }
  }

  void push(partial added) {
    const double smallest = added.size() < parts_ ? 0 : added.back().cost;
    heap_.push_back({added.front().cost - smallest, partials_.size()});
    std::push_heap(heap_.begin(), heap_.end());
    partials_.push_back(std::move(added));
  }

  partial pop() {
    std::pop_heap(heap_.begin(), heap_.end());
    const std::size_t index = heap_.back().index;
    heap_.pop_back();
    return std::move(partials_[index]);
  }

  void join_two() {
    partial a = pop(), b = pop();
    if (a.size() < b.size()) std::swap(a, b);
    const std::size_t empty = parts_ - a.size();
    const std::size_t moved = std::min(empty, b.size());  // into empty parts: the largest ones
    for (std::size_t i = moved; i < b.size(); ++i) {
      part& to = a[parts_ - 1 - i];
      to.cost += b[i].cost;
      next_[to.last] = b[i].first;
      to.last = b[i].last;
    }
    const auto middle = static_cast<std::ptrdiff_t>(a.size());
    if (moved < b.size()) std::sort(a.begin(), a.end(), costs_more);
    a.insert(a.end(), b.begin(), b.begin() + static_cast<std::ptrdiff_t>(moved));
    std::inplace_merge(a.begin(), a.begin() + middle, a.end(), costs_more);
    push(std::move(a));
  }

  division listed() {
    division result(parts_);
    if (heap_.empty()) return result;
    const partial all = pop();
    for (std::size_t p = 0; p < all.size(); ++p) {
      for (std::size_t each = all[p].first; each != none; each = next_[each]) result[p].push_back(each);
      std::sort(result[p].begin(), result[p].end());
    }
    return result;
  }

  std::span<const double> costs_;
  std::size_t parts_;
  std::vector<std::size_t> next_;  ///< the sample after each, in its part
  std::vector<partial> partials_;
  std::vector<entry> heap_;
};

/// Improves a division without changing the counts of its parts: exchanges a sample of the largest part with one of
/// another part, as long as that makes the largest part smaller.
class sample_exchange {
 public:
  sample_exchange(std::span<const double> costs, division& parts) : costs_(costs), parts_(parts) {
    for (auto& part : parts_) {
      std::sort(part.begin(), part.end(), [&](std::size_t a, std::size_t b) { return comes_before(a, b); });
      double sum = 0;
      for (const std::size_t each : part) sum += costs_[each];
      sums_.push_back(sum);
    }
  }

  void run() {
    // Each exchange makes the difference of two parts smaller; a bound keeps the cost in proportion to that of
    // dividing.
    for (std::size_t exchanges = 0; exchanges < 16 * parts_.size() && improve(); ++exchanges) {}
    for (auto& part : parts_) std::sort(part.begin(), part.end());
  }

 private:
  /// Samples of the two parts, and by how much the exchange lowers the larger part.
  struct pair {
    std::size_t of_larger = 0, of_smaller = 0;
    double lowers = 0;
  };

  bool comes_before(std::size_t a, std::size_t b) const noexcept {
    return costs_[a] != costs_[b] ? costs_[a] < costs_[b] : a < b;
  }

  bool improve() {
    const auto largest = static_cast<std::size_t>(std::max_element(sums_.begin(), sums_.end()) - sums_.begin());
    std::vector<std::size_t> others(parts_.size());
    std::iota(others.begin(), others.end(), std::size_t{0});
    std::sort(others.begin(), others.end(),
              [&](std::size_t a, std::size_t b) { return sums_[a] != sums_[b] ? sums_[a] < sums_[b] : a < b; });
    for (const std::size_t other : others) {
      const double difference = sums_[largest] - sums_[other];
      const pair found = best_pair(parts_[largest], parts_[other], difference);
      // The new sums must be less than the largest one even if they are rounded.
      if (found.lowers <= 1e-9 * sums_[largest]) continue;
      exchange(largest, found.of_larger, other, found.of_smaller);
      return true;
    }
    return false;
  }

  /// Returns the pair after whose exchange the larger of both parts is as small as possible.
  pair best_pair(const std::vector<std::size_t>& larger, const std::vector<std::size_t>& smaller,
                 double difference) const noexcept {
    pair best;
    std::size_t j = 0;
    const auto consider = [&](std::size_t of_larger, std::size_t of_smaller) {
      const double moved = costs_[larger[of_larger]] - costs_[smaller[of_smaller]];
      const double lowers = std::min(moved, difference - moved);
      if (lowers > best.lowers) best = {of_larger, of_smaller, lowers};
    };
    for (std::size_t i = 0; i < larger.size(); ++i) {
      while (j < smaller.size() && costs_[smaller[j]] < costs_[larger[i]] - difference / 2) ++j;
      if (j < smaller.size()) consider(i, j);
      if (j > 0) consider(i, j - 1);
    }
    return best;
  }

  void exchange(std::size_t a, std::size_t of_a, std::size_t b, std::size_t of_b) {
    const std::size_t from_a = parts_[a][of_a], from_b = parts_[b][of_b];
    const double moved = costs_[from_a] - costs_[from_b];
    sums_[a] -= moved;
    sums_[b] += moved;
    replace(parts_[a], of_a, from_b);
    replace(parts_[b], of_b, from_a);
  }

  void replace(std::vector<std::size_t>& part, std::size_t at, std::size_t with) {
    part.erase(part.begin() + static_cast<std::ptrdiff_t>(at));
    part.insert(std::lower_bound(part.begin(), part.end(), with,
                                 [&](std::size_t a, std::size_t b) { return comes_before(a, b); }),
                with);
  }

  std::span<const double> costs_;
  division& parts_;
  std::vector<double> sums_;
};

}  // namespace detail

namespace detail {

inline void require_costs(std::span<const double> costs) {
  const auto wrong = std::find_if_not(
      costs.begin(), costs.end(), [](double each) { return 0 <= each && each <= std::numeric_limits<double>::max(); });
  if (wrong == costs.end()) return;
  raise(errc::invalid_argument,
        hocket::detail::concat({"the cost of sample ", wrong - costs.begin(), " is ", std::to_string(*wrong),
                                ": costs must be finite and at least 0"}),
        {.operation = "data::balance"});
}

}  // namespace detail

/// Divides samples with these costs into `parts` parts. The largest part has at most the cost that it has if samples
/// are divided in order. All ranks that pass equal arguments get the same division. Costs must be finite and at least
/// 0; a part may be empty. Raises `invalid_argument` if `parts` is 0, or for another cost.
///
/// Cost: for n samples and p parts, time proportional to n (log n + p); about 150 ms for 100 000 samples and 64 parts.
inline division balance(std::span<const double> costs, std::size_t parts, part_counts counts = part_counts::any) {
  if (parts == 0)
    raise(errc::invalid_argument, "samples can't be divided into 0 parts", {.operation = "data::balance"});
  detail::require_costs(costs);
  division found = detail::largest_differencing(costs, parts).divide(counts);
  detail::sample_exchange(costs, found).run();
  division in_order = divide_in_order(costs.size(), parts);
  return largest_cost(found, costs) <= largest_cost(in_order, costs) ? std::move(found) : std::move(in_order);
}

}  // namespace data
HOCKET_END_NAMESPACE
