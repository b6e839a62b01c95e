// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// reduce against the sequential evaluation of its plans, with each root.
//
// The tests cover all pairs of (plan, ranks), (plan, type), (plan, size) and (plan, placement); each kind of operation
// with at least one type; large vectors with float.
#include "collective/cases.hpp"

#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/reduce.hpp>
#include <hocket/operation/exact_sum.hpp>
#include <hocket/operation/operations.hpp>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

using namespace hocket_test;

namespace {

std::vector<plan::any_algorithm> plans_of_reduce(int ranks, int root, bool commutative) {
  std::vector<plan::any_algorithm> chosen = {plan::binomial_reduce{root}, plan::direct_reduce{root}};
  const plan::ring_reduce ring{root};
  if (commutative || ring.shape(ranks).order <= plan::combination_order::rank_order) chosen.push_back(ring);
  return chosen;
}

template <class T, class Op>
void check_reduce(int ranks, int root, const std::vector<std::size_t>& sizes, const Op& op = {}) {
  const auto cases = pair_up(plans_of_reduce(ranks, root, hocket::is_commutative_v<Op, T>), sizes);
  const auto one_buffer = [](int, std::span<T> whole, std::size_t, std::size_t result) {
    return std::pair(whole, whole.first(result));
  };
  check_cases<T>(
      ranks, cases, op, one_buffer,
      [&](thread_rank& me, const call_case& each, std::span<const T> in, std::span<T> out, const auto& options) {
        const std::vector<T> before(in.begin(), in.end());
        hocket::reduce(me.comm(), in, out, op, hocket::root{root}, options);
        if (!each.in_place || me.rank() == root) return;
        me.check(same_bytes(in, std::span<const T>(before)), "changed `in` of a rank that is not the root");
      });
}

template <class T, class Op>
void reduce_of_few(const Op& op = {}) {
  for (const int ranks : rank_counts) {
    for (int root = 0; root < ranks; ++root) check_reduce<T>(ranks, root, {0, 1, 3, 7, 250, 1003}, op);
  }
}

}  // namespace

TEST_CASE("reduce equals the evaluation of its plan, for each type, operation and root", "[types]") {
  reduce_of_few<float>(std::plus<>{});
  reduce_of_few<float>(hocket::average{});
  reduce_of_few<double>(hocket::minimum{});
  reduce_of_few<std::int32_t>(std::multiplies<>{});
  reduce_of_few<std::uint8_t>(std::plus<>{});
  reduce_of_few<hocket::half>(hocket::scaled_sum<float>{0.3F});
  reduce_of_few<hocket::bfloat16>(std::plus<>{});
  reduce_of_few<hocket::float8_e5m2>(hocket::maximum{});
}

TEST_CASE("reduce keeps the order of ranks for an operation that is not commutative, with each root") {
  reduce_of_few<affine_map>(compose{});
}

TEST_CASE("reduce of exact sums equals the evaluation of its plan", "[types]") {
  reduce_of_few<hocket::exact_sum<float>>(std::plus<>{});
}

TEST_CASE("reduce of large vectors equals the evaluation of its plan") {
  for (const int ranks : {2, 5}) check_reduce<float>(ranks, ranks - 1, {40'001, 65'536, 100'003}, std::plus<>{});
}

TEST_CASE("in the fixed tree, reduce gives the bits of all_reduce, whatever the root and the plan") {
  for (const int ranks : rank_counts) {
    on_ranks(ranks, [&](thread_rank& me) {
      const std::vector<float> in = samples<float>(me.rank(), 257);
      std::vector<float> wanted(in.size());
      const auto fixed = hocket::require(hocket::fixed_tree);
      hocket::all_reduce(me.comm(), in, wanted, std::plus<>{}, hocket::with(fixed));
      for (int root = 0; root < ranks; ++root) {
        for (const plan::any_algorithm& chosen : plans_of_reduce(ranks, root, false)) {
          if (chosen.shape(ranks).order != plan::combination_order::fixed_tree) continue;
          me.at([&] { return std::string(chosen.name()) + " to rank " + std::to_string(root); });
          std::vector<float> out(me.rank() == root ? in.size() : 0);
          hocket::reduce(me.comm(), in, out, std::plus<>{}, hocket::root{root},
                         hocket::with(fixed, hocket::algorithm(chosen)));
          me.check(out.empty() || same_bytes(std::span<const float>(out), std::span<const float>(wanted)),
                   "has other bits");
        }
        std::vector<float> buffer = in;
        hocket::reduce(me.comm(), hocket::in_place(buffer), std::plus<>{}, hocket::root{root}, hocket::with(fixed));
        const std::vector<float>& result = me.rank() == root ? wanted : in;
        me.check(same_bytes(std::span<const float>(buffer), std::span<const float>(result)), "in place");
      }
    });
  }
}
