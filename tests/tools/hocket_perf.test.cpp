// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tests the results that hocket-perf expects. Its check is valid only if all orders of combination give the expected
// result, and if the values of another rank or position would change it.
#include "support/catch.hpp"

#include "../../tools/hocket-perf/figures.hpp"
#include "../../tools/hocket-perf/pattern.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr std::size_t positions = 300;

template <class T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// Combines like an engine: in the accumulator type, rounded to T after each step.
template <class T, class Op>
T combine(const T& a, const T& b) {
  using reduction = hocket::reduction<Op, T>;
  using accumulator = typename reduction::accumulator;
  return static_cast<T>(reduction::combine(Op{}, static_cast<accumulator>(a), static_cast<accumulator>(b)));
}

template <class T, class Op>
T finish(const T& value, int ranks) {
  if constexpr (hocket::reduction<Op, T>::prepares) {
    return hocket::reduction<Op, T>::finish(Op{}, value, ranks);
  } else {
    return value;
  }
}

template <class T, class Op>
std::vector<T> values_at(int ranks, std::size_t position) {
  std::vector<T> values;
  for (int rank = 0; rank < ranks; ++rank) {
    values.push_back(perf::pattern<T, Op>::value(rank, ranks, position, 7));
  }
  return values;
}

template <class T, class Op>
T in_order(const std::vector<T>& values, std::size_t first) {
  T result = values[first];
  for (std::size_t i = 1; i < values.size(); ++i) {
    result = combine<T, Op>(result, values[(first + i) % values.size()]);
  }
  return result;
}

template <class T, class Op>
T as_tree(std::vector<T> values) {
  while (values.size() > 1) {
    std::vector<T> next;
    for (std::size_t i = 0; i + 1 < values.size(); i += 2) next.push_back(combine<T, Op>(values[i + 1], values[i]));
    if (values.size() % 2 == 1) next.push_back(values.back());
    values = next;
  }
  return values[0];
}

template <class T, class Op>
void expect_one_result_of_all_orders() {
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 16, 17, 64, 100}) {
    int wrong = 0;
    for (std::size_t i = 0; i < positions; ++i) {
      const T expected = perf::pattern<T, Op>::result(ranks, i, 7);
      const std::vector<T> values = values_at<T, Op>(ranks, i);
      const auto right = [&](const T& combined) { return same_bits(finish<T, Op>(combined, ranks), expected); };
      wrong += !right(in_order<T, Op>(values, 0)) || !right(in_order<T, Op>(values, values.size() / 2)) ||
               !right(as_tree<T, Op>(values));
    }
    INFO("ranks: " << ranks);
    CHECK(wrong == 0);
  }
}

/// Checks that more than an eighth of the values change with the rank, the position and the round.
template <class T, class Op>
void expect_values_to_differ() {
  for (const int ranks : {2, 5, 16}) {
    const auto value = [&](int rank, std::size_t position, unsigned salt) {
      return perf::pattern<T, Op>::value(rank, ranks, position, salt);
    };
    std::size_t by_rank = 0;
    std::size_t by_position = 0;
    std::size_t by_salt = 0;
    for (std::size_t i = 0; i < positions; ++i) {
      by_rank += !same_bits(value(0, i, 1), value(1, i, 1)) ? 1U : 0U;
      by_position += !same_bits(value(0, i, 1), value(0, i + 1, 1)) ? 1U : 0U;
      by_salt += !same_bits(value(0, i, 1), value(0, i, 2)) ? 1U : 0U;
    }
    INFO("ranks: " << ranks);
    CHECK(by_rank > positions / 8);
    CHECK(by_position > positions / 8);
    CHECK(by_salt > positions / 8);
  }
}

template <class T, class Op>
void expect_pattern() {
  expect_one_result_of_all_orders<T, Op>();
  expect_values_to_differ<T, Op>();
}

}  // namespace

TEMPLATE_TEST_CASE("hocket-perf: all orders of combination give the result that is expected", "", std::int8_t,
                   std::uint8_t, std::int32_t, std::uint64_t, hocket::half, hocket::bfloat16, float, double,
                   hocket::float8_e4m3, hocket::float8_e5m2) {
  expect_pattern<TestType, perf::sum<TestType>>();
  expect_pattern<TestType, perf::product<TestType>>();
  expect_pattern<TestType, hocket::minimum>();
  expect_pattern<TestType, hocket::maximum>();
  expect_pattern<TestType, hocket::average>();
}

TEST_CASE("hocket-perf: percentiles are elements of the list") {
  std::vector<double> all;
  for (int i = 100; i >= 1; --i) all.push_back(i);
  CHECK(perf::percentile(all, 0.5) == 50);
  CHECK(perf::percentile(all, 0.99) == 99);
  CHECK(perf::percentile(all, 1) == 100);
  CHECK(perf::percentile({3}, 0.99) == 3);
  CHECK(perf::percentile({4, 2}, 0.5) == 2);
}

TEST_CASE("hocket-perf defines bus bandwidth like nccl-tests") {
  using perf::collective;
  perf::row line{.what = collective::all_reduce, .ranks = 4, .bytes = 1'000'000, .out_of_place = {}, .in_place = {}};
  const perf::figures millisecond{{1e-3, 1e-3, 5e-3}, 0};
  CHECK(line.algorithm_bandwidth(millisecond) == Approx(1));
  CHECK(line.bus_bandwidth(millisecond) == Approx(1.5));
  line.what = collective::all_gather;
  CHECK(line.bus_bandwidth(millisecond) == Approx(0.75));
  line.what = collective::broadcast;
  CHECK(line.bus_bandwidth(millisecond) == Approx(1));
  CHECK(perf::bus_factor(collective::all_reduce, 1) == 0);
  CHECK(perf::bus_factor(collective::all_to_all, 2) == 0.5);
}

TEST_CASE("hocket-perf: the size is that of all blocks if the collective has blocks") {
  using perf::collective;
  CHECK(perf::count_of(collective::all_reduce, 4, 4, 1024) == 256);
  CHECK(perf::count_of(collective::all_gather, 4, 4, 1024) == 64);
  CHECK(perf::count_of(collective::all_to_all, 3, 8, 8) == 1);
  CHECK(perf::count_of(collective::all_reduce, 3, 8, 0) == 0);
  CHECK(perf::count_of(collective::barrier, 3, 8, 100) == 0);
}
