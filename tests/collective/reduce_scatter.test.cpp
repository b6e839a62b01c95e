// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// reduce_scatter against the sequential evaluation of its plans.
//
// The tests cover all pairs of (plan, ranks), (plan, type), (plan, size) and (plan, placement); each kind of operation
// with at least one type; large blocks with float.
#include "collective/cases.hpp"

#include <hocket/collective/reduce_scatter.hpp>
#include <hocket/operation/exact_sum.hpp>
#include <hocket/operation/operations.hpp>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

using namespace hocket_test;

namespace {

std::vector<plan::any_algorithm> plans_of_reduce_scatter(int ranks, bool commutative) {
  std::vector<plan::any_algorithm> chosen = {plan::direct_reduce_scatter{}, plan::pairwise_reduce_scatter{},
                                             plan::recursive_halving_reduce_scatter{}};
  if (commutative || ranks <= 2) chosen.push_back(plan::ring_reduce_scatter{});
  return chosen;
}

template <class T, class Op>
void check_reduce_scatter(int ranks, const std::vector<std::size_t>& sizes, const Op& op = {}) {
  const auto cases = pair_up(plans_of_reduce_scatter(ranks, hocket::is_commutative_v<Op, T>), sizes);
  const auto own_block = [](int rank, std::span<T> whole, std::size_t, std::size_t block) {
    return std::pair(whole, whole.subspan(static_cast<std::size_t>(rank) * block, block));
  };
  check_cases<T>(
      ranks, cases, op, own_block,
      [&](thread_rank& me, const call_case& each, std::span<const T> in, std::span<T> out, const auto& options) {
        const std::vector<T> before(in.begin(), in.end());
        hocket::reduce_scatter(me.comm(), in, out, op, options);
        for (std::size_t i = 0; each.in_place && i < in.size(); ++i) {
          if (i / out.size() == static_cast<std::size_t>(me.rank())) continue;
          if (!me.check(same_bytes(in.subspan(i, 1), std::span<const T>(before).subspan(i, 1)),
                        "changed another block of `in`")) {
            break;
          }
        }
      });
}

template <class T, class Op>
void reduce_scatter_of_few(const Op& op = {}) {
  for (const int ranks : rank_counts) check_reduce_scatter<T>(ranks, {0, 1, 3, 7, 250, 1003}, op);
}

}  // namespace

TEST_CASE("reduce_scatter equals the evaluation of its plan, for each type and operation", "[types]") {
  reduce_scatter_of_few<float>(std::plus<>{});
  reduce_scatter_of_few<float>(hocket::average{});
  reduce_scatter_of_few<double>(std::plus<>{});
  reduce_scatter_of_few<double>(hocket::minimum{});
  reduce_scatter_of_few<std::int32_t>(std::multiplies<>{});
  reduce_scatter_of_few<std::uint8_t>(std::plus<>{});
  reduce_scatter_of_few<hocket::half>(hocket::scaled_sum<float>{0.3F});
  reduce_scatter_of_few<hocket::bfloat16>(std::plus<>{});
  reduce_scatter_of_few<hocket::float8_e4m3>(std::plus<>{});
  reduce_scatter_of_few<hocket::float8_e5m2>(hocket::maximum{});
}

TEST_CASE("reduce_scatter keeps the order of ranks for an operation that is not commutative") {
  reduce_scatter_of_few<affine_map>(compose{});
}

TEST_CASE("reduce_scatter of exact sums equals the evaluation of its plan", "[types]") {
  reduce_scatter_of_few<hocket::exact_sum<float>>(std::plus<>{});
}

TEST_CASE("reduce_scatter of large blocks equals the evaluation of its plan") {
  for (const int ranks : {2, 5}) check_reduce_scatter<float>(ranks, {40'001, 65'536, 100'003}, std::plus<>{});
}
