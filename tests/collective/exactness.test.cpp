// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Guarantees of calls on the bits of their results.
#include "collective/cases.hpp"
#include "support/fixed_tree.hpp"

#include <hocket/collective/all_gather.hpp>
#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/reduce_scatter.hpp>
#include <hocket/operation/operations.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

using namespace hocket_test;

namespace {

constexpr std::size_t contributions = 840;  // a multiple of every number of ranks up to 8

/// Contribution `c` to element `i`.
float contribution(std::size_t c, std::size_t i) { return sample<float>(static_cast<int>(c), i); }

/// Rank 0's sum of all contributions, of which each rank adds a share exactly; if `skewed`, rank 0 has most of them.
std::vector<float> sum_of_split(int ranks, bool skewed, std::size_t size) {
  std::vector<float> result;
  on_ranks(ranks, [&](thread_rank& me) {
    const auto p = static_cast<std::size_t>(ranks);
    const auto r = static_cast<std::size_t>(me.rank());
    const auto bound = [&](std::size_t rank) {
      return rank == 0 ? 0 : skewed ? contributions - (p - rank) : rank * contributions / p;
    };
    std::vector<hocket::exact_sum<float>> sums(size);
    for (std::size_t c = bound(r); c < bound(r + 1); ++c) {
      for (std::size_t i = 0; i < size; ++i) sums[i].add(contribution(c, i));
    }
    hocket::all_reduce(me.comm(), hocket::in_place(sums), std::plus<>{},
                       hocket::with(hocket::require(hocket::rank_count_invariant)));
    if (me.rank() != 0) return;
    for (const auto& each : sums) result.push_back(each.value());
  });
  return result;
}

template <class T, class Op, class Options>
std::vector<std::vector<T>> results(int ranks, const std::vector<std::vector<T>>& inputs, const Op& op,
                                    const Options& options) {
  std::vector<std::vector<T>> all(static_cast<std::size_t>(ranks));
  on_ranks(ranks, [&](thread_rank& me) {
    const auto r = static_cast<std::size_t>(me.rank());
    all[r].resize(inputs[r].size());
    hocket::all_reduce(me.comm(), inputs[r], all[r], op, options);
  });
  return all;
}

template <class T>
bool equal_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return same_bytes(std::span<const T>(a), std::span<const T>(b));
}

}  // namespace

TEST_CASE("rank_count_invariant: the bits do not depend on the number of ranks or the split of the contributions") {
  constexpr std::size_t size = 37;
  std::vector<float> expected;
  for (std::size_t i = 0; i < size; ++i) {
    hocket::exact_sum<float> sum;
    for (std::size_t c = contributions; c-- > 0;) sum.add(contribution(c, i));
    expected.push_back(sum.value());
  }
  for (int ranks = 1; ranks <= 8; ++ranks) {
    INFO(ranks << " ranks");
    CHECK(equal_bits(sum_of_split(ranks, false, size), expected));
    CHECK(equal_bits(sum_of_split(ranks, true, size), expected));
  }
}

TEST_CASE("rank_count_invariant: with each algorithm, a sum of floats is the exact sum, rounded once") {
  const auto required = hocket::require(hocket::rank_count_invariant);
  for (const int ranks : rank_counts) {
    const auto inputs = samples_of_all<float>(ranks, 501);
    std::vector<float> expected;
    for (std::size_t i = 0; i < 501; ++i) {
      hocket::exact_sum<float> sum;
      for (const auto& each : inputs) sum.add(each[i]);
      expected.push_back(sum.value());
    }
    const auto check = [&](const auto& options) {
      for (const auto& each : results(ranks, inputs, std::plus<>{}, options)) CHECK(equal_bits(each, expected));
    };
    check(hocket::with(required));
    check(hocket::with(required, hocket::ring));
    check(hocket::with(required, hocket::double_tree(3)));
    check(hocket::with(required, hocket::one_shot));
    check(hocket::with(required, hocket::halving_doubling));
  }
}

namespace {

/// Result on rank 0 if all of `ranks` ranks contribute `values`.
template <class T, class Op>
std::vector<T> of_equal_contributions(int ranks, const std::vector<T>& values, const Op& op) {
  std::vector<T> result;
  on_ranks(ranks, [&](thread_rank& me) {
    const auto options = hocket::with(hocket::require(hocket::rank_count_invariant));
    std::vector<T> out(values.size()), in_place = values, own(values.size());
    hocket::all_reduce(me.comm(), values, out, op, options);
    hocket::all_reduce(me.comm(), hocket::in_place(in_place), op, options);
    std::vector<T> blocks;
    for (int rank = 0; rank < me.size(); ++rank) blocks.insert(blocks.end(), values.begin(), values.end());
    hocket::reduce_scatter(me.comm(), blocks, own, op, options);
    me.check(equal_bits(out, in_place) && equal_bits(out, own), "the forms of the call differ");
    if (me.rank() == 0) result = out;
  });
  return result;
}

template <class T, class Op>
void check_equal_contributions(const std::vector<T>& values, const std::vector<T>& expected, const Op& op) {
  for (const int ranks : {1, 2, 3, 5}) {
    INFO(ranks << " ranks");
    CHECK(equal_bits(of_equal_contributions(ranks, values, op), expected));
  }
}

}  // namespace

TEST_CASE("rank_count_invariant: NaN, signed zeros and logical values give the same bits on one rank as on several") {
  const auto nan = std::bit_cast<float>(0xffc12345U);
  const auto half_nan = std::bit_cast<hocket::half>(std::uint16_t{0xfe01});
  const std::vector<hocket::half> halves{half_nan, hocket::half(-0.0F)};
  const std::vector<float> floats{nan, -0.0F, 0.0F, 1.5F, -INFINITY};
  const std::vector<float> one = of_equal_contributions(2, floats, hocket::minimum{});
  CHECK(std::isnan(one[0]));
  check_equal_contributions(floats, one, hocket::minimum{});
  check_equal_contributions(floats, one, hocket::maximum{});
  check_equal_contributions(halves, of_equal_contributions(2, halves, hocket::maximum{}), hocket::maximum{});
  for (const int ranks : {1, 2, 3, 5}) {
    CHECK(equal_bits(of_equal_contributions<float>(ranks, {nan}, std::plus<>{}), {one[0]}));
  }
  check_equal_contributions<int>({5, 0, 1, -3}, {1, 0, 1, 1}, std::logical_and<>{});
  check_equal_contributions<int>({5, 0, 1, -3}, {1, 0, 1, 1}, std::logical_or<int>{});
  check_equal_contributions<std::uint8_t>({255, 0, 1, 2}, {1, 0, 1, 1}, std::logical_and<std::uint8_t>{});
  check_equal_contributions<int>({5, 0, -3}, {5, 0, -3}, hocket::minimum{});
}

TEST_CASE("rank_count_invariant: reduce_scatter of doubles gives the bits of all_reduce") {
  const auto options = hocket::with(hocket::require(hocket::rank_count_invariant));
  for (const int ranks : {2, 3, 8}) {
    on_ranks(ranks, [&](thread_rank& me) {
      const auto in = samples<double>(me.rank(), 11 * static_cast<std::size_t>(ranks));
      std::vector<double> all(in.size()), own(11), gathered(in.size());
      hocket::all_reduce(me.comm(), in, all, std::plus<>{}, options);
      hocket::reduce_scatter(me.comm(), in, own, std::plus<>{}, options);
      hocket::all_gather(me.comm(), own, gathered);
      me.check(equal_bits(all, gathered), "other bits");
    });
  }
}

TEST_CASE("same_on_all_ranks and run_to_run: the bits are the same on all ranks and in each run") {
  for (const int ranks : rank_counts) {
    const auto inputs = samples_of_all<float>(ranks, 1003);
    const auto check = [&](const auto& algorithm) {
      const auto first =
          results(ranks, inputs, std::plus<>{}, hocket::with(algorithm, hocket::require(hocket::run_to_run)));
      for (const auto& each : first) CHECK(equal_bits(each, first[0]));
      const auto again =
          results(ranks, inputs, std::plus<>{}, hocket::with(algorithm, hocket::require(hocket::same_on_all_ranks)));
      CHECK(equal_bits(again[0], first[0]));
    };
    check(hocket::ring);
    check(hocket::recursive_doubling);
    check(hocket::halving_doubling);
    check(hocket::double_tree);
    check(hocket::two_shot);
  }
}

TEST_CASE("with the data of these tests, other orders of additions give other bits") {
  const auto inputs = samples_of_all<float>(8, 1003);
  const auto ring = results(8, inputs, std::plus<>{}, hocket::with(hocket::ring));
  const auto one_shot = results(8, inputs, std::plus<>{}, hocket::with(hocket::one_shot));
  const auto tree = results(8, inputs, std::plus<>{}, hocket::with(hocket::halving_doubling));
  CHECK(!equal_bits(ring[0], one_shot[0]));
  CHECK(!equal_bits(tree[0], one_shot[0]));
}

TEST_CASE("wire<bfloat16>: the result is that of an all_reduce of contributions rounded to bfloat16") {
  const auto options = [](const auto& algorithm) { return hocket::with(algorithm, hocket::wire<hocket::bfloat16>); };
  for (const int ranks : rank_counts) {
    const auto inputs = samples_of_all<float>(ranks, 333);
    std::vector<std::vector<hocket::bfloat16>> rounded;
    for (const auto& each : inputs) {
      rounded.emplace_back();
      for (const float value : each) rounded.back().push_back(hocket::bfloat16(value));
    }
    const auto check = [&](const auto& algorithm) {
      const auto wide = results(ranks, inputs, std::plus<>{}, options(algorithm));
      const auto narrow = results(ranks, rounded, std::plus<>{}, hocket::with(algorithm));
      for (std::size_t i = 0; i < 333; ++i) {
        const float found = wide[0][i];
        const auto expected = static_cast<float>(narrow[0][i]);
        CHECK(std::memcmp(&found, &expected, sizeof found) == 0);
      }
    };
    check(hocket::ring);
    check(hocket::two_shot);
    check(hocket::recursive_doubling);
  }
}

TEST_CASE("wire<bfloat16> halves the bytes of every step") {
  on_ranks(3, [](thread_rank& me) {
    std::vector<float> in(300, 1.0F), out(300);
    trace steps;
    hocket::all_reduce(
        me.comm(), in, out, std::plus<>{},
        hocket::with(hocket::ring, hocket::wire<hocket::bfloat16>, hocket::observe_steps(steps.observer())));
    const std::string wrong = difference(steps.events(), {plan::ring_all_reduce{}, 3, me.rank(), 300, 2});
    me.check(wrong.empty(), wrong);
    me.check(out[7] == 3.0F, "wrong sum");
  });
}

namespace {

template <class T>
void check_special_values() {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const T infinity = std::numeric_limits<T>::infinity();
  const auto negative = [](T value) { return static_cast<T>(-value); };
  const T zero(0.0F);
  const T one(1.0F);
  for (const int ranks : {2, 3, 8}) {
    for (int odd = 0; odd < ranks; ++odd) {
      on_ranks(ranks, [&](thread_rank& me) {
        const bool other = me.rank() == odd;
        const std::vector<T> in = {other ? nan : one, other ? negative(zero) : zero, other ? zero : negative(zero),
                                   other ? infinity : one, other ? negative(infinity) : one};
        const auto check = [&](const auto& options) {
          std::vector<T> least(5), most(5), mean(5);
          hocket::all_reduce(me.comm(), in, least, hocket::minimum{}, options);
          hocket::all_reduce(me.comm(), in, most, hocket::maximum{}, options);
          hocket::all_reduce(me.comm(), in, mean, hocket::average{}, options);
          const auto sign = [](T value) { return std::signbit(static_cast<double>(value)); };
          const auto is_nan = [](T value) { return std::isnan(static_cast<double>(value)); };
          me.check(is_nan(least[0]) && is_nan(most[0]) && is_nan(mean[0]), "a NaN was lost");
          me.check(sign(least[1]) && sign(least[2]), "the minimum of zeros of both signs is -0");
          me.check(!sign(most[1]) && !sign(most[2]), "the maximum of zeros of both signs is +0");
          me.check(least[3] == one && most[3] == infinity && mean[3] == infinity, "infinity is the largest");
          me.check(least[4] == negative(infinity) && most[4] == one && mean[4] == negative(infinity),
                   "minus infinity is the smallest");
        };
        check(hocket::with());
        check(hocket::with(hocket::ring));
        check(hocket::with(hocket::double_tree(1)));
        check(hocket::with(hocket::two_shot));
      });
    }
  }
}

}  // namespace

TEST_CASE("minimum, maximum and average of NaN, infinities and zeros of both signs do not depend on the order") {
  check_special_values<float>();
  check_special_values<double>();
  check_special_values<hocket::bfloat16>();
  check_special_values<hocket::half>();
}

namespace {

/// Checks all algorithms of both collectives that support the fixed tree.
template <class T, class Op>
void check_fixed_tree(int ranks, std::size_t block, const Op& op) {
  const auto inputs = samples_of_all<T>(ranks, block * static_cast<std::size_t>(ranks));
  const std::vector<T> expected = in_fixed_tree(inputs, op);
  on_ranks(ranks, [&](thread_rank& me) {
    const auto required = hocket::require(hocket::fixed_tree);
    const auto& in = inputs[static_cast<std::size_t>(me.rank())];
    const std::span<const T> own_block =
        std::span(expected).subspan(block * static_cast<std::size_t>(me.rank()), block);
    const auto reduces = [&](const auto& options) {
      std::vector<T> out(in.size()), in_place = in;
      hocket::all_reduce(me.comm(), in, out, op, options);
      hocket::all_reduce(me.comm(), hocket::in_place(in_place), op, options);
      me.check(equal_bits(out, expected) && equal_bits(in_place, expected), "all_reduce gives other bits");
    };
    const auto scatters = [&](const auto& options) {
      std::vector<T> out(block);
      hocket::reduce_scatter(me.comm(), in, out, op, options);
      me.check(same_bytes(std::span<const T>(out), own_block), "reduce_scatter gives other bits");
    };
    me.at([&] { return std::to_string(block) + " elements per rank"; });
    reduces(hocket::with(required));
    reduces(hocket::with(required, hocket::recursive_doubling));
    reduces(hocket::with(required, hocket::halving_doubling));
    reduces(hocket::with(required, hocket::one_shot));
    reduces(hocket::with(required, hocket::two_shot));
    reduces(hocket::with(required, hocket::hint(hocket::ring)));
    reduces(hocket::with(required, hocket::require(hocket::checksummed)));
    scatters(hocket::with(required));
    scatters(hocket::with(required, hocket::direct));
    scatters(hocket::with(required, hocket::recursive_halving));
    scatters(hocket::with(required, hocket::require(hocket::checksummed)));
  });
}

}  // namespace

TEST_CASE("fixed_tree: every algorithm that supports it gives the bits of the fixed tree") {
  for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 11}) {
    for (const std::size_t block : {std::size_t{0}, std::size_t{1}, std::size_t{37}, bearable(5003)}) {
      INFO(ranks << " ranks");
      check_fixed_tree<float>(ranks, block, std::plus<>{});
      check_fixed_tree<hocket::bfloat16>(ranks, block, std::plus<>{});
    }
    check_fixed_tree<affine_map>(ranks, 19, compose{});
    check_fixed_tree<double>(ranks, 19, std::plus<>{});
    check_fixed_tree<std::uint8_t>(ranks, 19, std::plus<>{});
  }
}

TEST_CASE("fixed_tree: the bits differ from those of rank order if rounding shows the difference") {
  std::vector<std::vector<float>> inputs = {{1.0F}, {0x1p-24F}, {0x1p-24F}, {0x1p-24F}};
  const std::vector<float> tree = in_fixed_tree(inputs, std::plus<>{});
  for (const auto& each : results(4, inputs, std::plus<>{}, hocket::with(hocket::require(hocket::fixed_tree)))) {
    CHECK(each == tree);
  }
  for (const auto& each : results(4, inputs, std::plus<>{}, hocket::with(hocket::one_shot))) CHECK(each != tree);
}

TEST_CASE("fixed_tree: algorithms give the same bits for an operation in three parts, and with a wire type") {
  for (const int ranks : {1, 3, 5, 6}) {
    const auto inputs = samples_of_all<float>(ranks, 501);
    const auto check = [&](const auto& op, const auto& alike, const auto& otherwise) {
      const auto expected = results(ranks, inputs, op, alike);
      for (const auto& each : results(ranks, inputs, op, otherwise)) CHECK(equal_bits(each, expected[0]));
    };
    const auto required = hocket::require(hocket::fixed_tree);
    check(hocket::average{}, hocket::with(required, hocket::one_shot),
          hocket::with(required, hocket::halving_doubling));
    check(hocket::average{}, hocket::with(required, hocket::two_shot), hocket::with(hocket::recursive_doubling));
    const auto narrow = hocket::wire<hocket::bfloat16>;
    check(std::plus<>{}, hocket::with(required, narrow, hocket::one_shot),
          hocket::with(required, narrow, hocket::recursive_doubling));
  }
}

TEST_CASE("fixed_tree: a plan that the caller passes must claim it") {
  on_ranks(5, [](thread_rank& me) {
    const std::vector<float> in(10, 1.0F);
    std::vector<float> out(10);
    const auto required = hocket::require(hocket::fixed_tree);
    hocket::all_reduce(me.comm(), in, out, std::plus<>{},
                       hocket::with(required, hocket::algorithm(plan::recursive_doubling{})));
    me.check(out[9] == 5.0F, "a plan that claims the fixed tree gave a wrong sum");
    me.expect(hocket::errc::invalid_argument, [&] {
      hocket::all_reduce(me.comm(), in, out, std::plus<>{},
                         hocket::with(required, hocket::algorithm(plan::double_tree{})));
    });
  });
}
