// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// reduce_scatter_v against the sequential evaluation of its plans.
//
// The tests cover all pairs of (plan, ranks), (plan, lengths), (plan, placement) and (plan, type); operations that
// commute, that do not commute, and in three parts.
#include "collective/uneven.hpp"

#include <hocket/collective/reduce_scatter_v.hpp>
#include <hocket/operation/exact_sum.hpp>
#include <hocket/operation/operations.hpp>

#include <functional>
#include <span>
#include <vector>

using namespace hocket_test;

namespace {

template <class T, class Op>
void check_reduce_scatter_v(const Op& op = {}) {
  for (const int ranks : rank_counts) {
    std::vector<plan::any_algorithm> plans = {plan::direct_reduce_scatter{}, plan::pairwise_reduce_scatter{},
                                              plan::recursive_halving_reduce_scatter{}};
    if (hocket::is_commutative_v<Op, T> || ranks <= 2) plans.push_back(plan::ring_reduce_scatter{});
    check_uneven<T>(
        ranks, plans, op,
        [&](thread_rank& me, std::span<const T> in, std::span<T> out, const lengths& counts, const auto& options) {
          hocket::reduce_scatter_v(me.comm(), in, out, hocket::counts{counts}, op, options);
        });
  }
}

}  // namespace

TEST_CASE("reduce_scatter_v equals the evaluation of its plan") {
  check_reduce_scatter_v<float>(std::plus<>{});
  check_reduce_scatter_v<float>(hocket::average{});
}

TEST_CASE("reduce_scatter_v keeps the order of ranks for an operation that is not commutative") {
  check_reduce_scatter_v<affine_map>(compose{});
}

TEST_CASE("reduce_scatter_v of exact sums equals the evaluation of its plan", "[types]") {
  check_reduce_scatter_v<hocket::exact_sum<float>>(std::plus<>{});
}
