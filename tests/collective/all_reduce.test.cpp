// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// all_reduce against the sequential evaluation of its plans.
//
// The full product of plans, types, operations, ranks, sizes and placements would take too long. The tests cover all
// pairs of (plan, ranks), (plan, type), (plan, size) and (type, ranks); each operation with one integer and one
// floating-point type; each plan in place or not, aligned or not; large vectors with float and double on all plans.
#include "collective/cases.hpp"

#include <hocket/collective/all_reduce.hpp>
#include <hocket/operation/exact_sum.hpp>
#include <hocket/operation/operations.hpp>

#include <cstdint>
#include <functional>
#include <tuple>
#include <utility>
#include <vector>

using namespace hocket_test;

namespace {

/// Plans for `ranks` ranks; only those that keep rank order unless the operation is `commutative`.
std::vector<plan::any_algorithm> plans_of_all_reduce(int ranks, bool commutative) {
  std::vector<plan::any_algorithm> chosen;
  for (plan::any_algorithm each :
       {plan::any_algorithm(plan::ring_all_reduce{}), plan::any_algorithm(plan::recursive_doubling{}),
        plan::any_algorithm(plan::halving_doubling{}), plan::any_algorithm(plan::double_tree{1}),
        plan::any_algorithm(plan::double_tree{5}), plan::any_algorithm(plan::one_shot{}),
        plan::any_algorithm(plan::two_shot{})}) {
    if (commutative || keeps_order(each, ranks)) chosen.push_back(std::move(each));
  }
  return chosen;
}

template <class T, class Op>
void check_all_reduce(int ranks, const std::vector<call_case>& cases, const Op& op = {}) {
  const auto one_buffer = [](int, std::span<T> whole, std::size_t, std::size_t) { return std::pair(whole, whole); };
  check_cases<T>(
      ranks, cases, op, one_buffer,
      [&](thread_rank& me, const call_case& each, std::span<const T> in, std::span<T> out, const auto& options) {
        if (each.in_place) {
          hocket::all_reduce(me.comm(), hocket::in_place(out), op, options);
        } else {
          hocket::all_reduce(me.comm(), in, out, op, options);
        }
      });
}

template <class T, class Op>
void all_reduce_of_few(const Op& op = {}) {
  for (const int ranks : rank_counts) {
    auto cases = pair_up(plans_of_all_reduce(ranks, hocket::is_commutative_v<Op, T>), {0, 1, 7, 1003});
    const std::size_t line = hocket::detail::push_line::capacity / sizeof(typename hocket::reduction<Op, T>::partial);
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, line}) {
      if (size <= line) cases.push_back({plan::push_all_reduce{}, size, false, 0});
    }
    check_all_reduce<T>(ranks, cases, op);
  }
}

template <class T, class Op>
void all_reduce_of_many(const Op& op = {}) {
  for (const int ranks : {2, 3, 8})
    check_all_reduce<T>(ranks, pair_up(plans_of_all_reduce(ranks, true), {100'003, 262'144}), op);
}

}  // namespace

TEST_CASE("all_reduce of float equals the evaluation of its plan, on every plan") {
  all_reduce_of_few<float>(std::plus<>{});
  all_reduce_of_few<float>(std::multiplies<>{});
  all_reduce_of_few<float>(hocket::minimum{});
  all_reduce_of_few<float>(hocket::average{});
  all_reduce_of_few<float>(hocket::scaled_sum<float>{0.3F});
}

TEST_CASE("all_reduce of large vectors equals the evaluation of its plan") {
  all_reduce_of_many<float>(std::plus<>{});
  all_reduce_of_many<double>(std::plus<>{});
}

TEST_CASE("all_reduce of double and integers equals the evaluation of its plan", "[types]") {
  all_reduce_of_few<double>(std::plus<>{});
  all_reduce_of_few<double>(hocket::maximum{});
  all_reduce_of_few<std::int32_t>(std::plus<>{});
  all_reduce_of_few<std::int32_t>(std::multiplies<>{});
  all_reduce_of_few<std::int32_t>(hocket::average{});
  all_reduce_of_few<std::uint8_t>(std::plus<>{});
  all_reduce_of_few<std::uint8_t>(hocket::maximum{});
}

TEST_CASE("all_reduce of small floating-point types equals the evaluation of its plan", "[types]") {
  all_reduce_of_few<hocket::half>(std::plus<>{});
  all_reduce_of_few<hocket::half>(hocket::average{});
  all_reduce_of_few<hocket::bfloat16>(std::plus<>{});
  all_reduce_of_few<hocket::bfloat16>(hocket::scaled_sum<float>{0.7F});
  all_reduce_of_few<hocket::float8_e4m3>(std::plus<>{});
  all_reduce_of_few<hocket::float8_e4m3>(hocket::minimum{});
  all_reduce_of_few<hocket::float8_e5m2>(std::plus<>{});
}

TEST_CASE("all_reduce keeps the order of ranks for an operation that is not commutative") {
  all_reduce_of_few<affine_map>(compose{});
}

TEST_CASE("all_reduce of exact sums equals the evaluation of its plan", "[types]") {
  all_reduce_of_few<hocket::exact_sum<float>>(std::plus<>{});
}
