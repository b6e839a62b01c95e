// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Redistributions with expected sequences of moves.
#include <hocket/shard/placement.hpp>
#include <hocket/shard/redistribution_plan.hpp>

#include <array>
#include <cstddef>

namespace {

using namespace hocket;

constexpr placement R{placement_kind::replicated};
constexpr placement I{placement_kind::invariant};
constexpr placement P{placement_kind::partial_sum};
constexpr placement S(int dimension) { return {placement_kind::shard, dimension}; }

// A matrix of 64 x 64 floats on 2 x 4 ranks.

constexpr auto planned(std::array<placement, 2> from, std::array<placement, 2> to, std::array<int, 2> mesh = {2, 4}) {
  return plan_redistribution<2, 2>({64, 64}, mesh, from, to, sizeof(float));
}

template <class... Kinds>
constexpr bool is_plan(const redistribution_plan<2>& plan, Kinds... kinds) {
  if (!plan.possible || plan.size != sizeof...(Kinds)) return false;
  std::size_t i = 0;
  return ((plan.moves[i++].kind == kinds) && ...);
}

static_assert(is_plan(planned({R, S(0)}, {R, S(0)})));
static_assert(is_plan(planned({R, I}, {R, R})));
static_assert(is_plan(planned({R, R}, {R, S(0)}), move_kind::slice));
static_assert(is_plan(planned({R, S(0)}, {R, R}), move_kind::gather_to_all));
static_assert(is_plan(planned({R, S(0)}, {R, S(1)}), move_kind::exchange));
static_assert(is_plan(planned({R, P}, {R, R}), move_kind::reduce_to_all));
static_assert(is_plan(planned({R, P}, {R, S(1)}), move_kind::reduce_to_slices));
static_assert(is_plan(planned({R, R}, {R, P}), move_kind::keep_on_first));
static_assert(is_plan(planned({S(0), S(0)}, {R, R}), move_kind::gather_to_all));  // one gather along both axes
static_assert(planned({S(0), S(0)}, {R, R}).moves[0].along == 3U);
static_assert(is_plan(planned({P, P}, {R, R}), move_kind::reduce_to_all));
static_assert(is_plan(planned({S(0), R}, {S(1), R}, {1, 4})));  // one rank has all rows
static_assert(planned({S(0), S(1)}, {S(1), S(0)}).possible);
static_assert(planned({S(0), S(1)}, {S(1), S(0)}).collectives() <= 2);
static_assert(is_plan(planned({R, S(0)}, {R, P}), move_kind::pad_with_zeros));
static_assert(is_plan(planned({S(0), R}, {P, P}), move_kind::pad_with_zeros));
static_assert(is_plan(planned({S(0), S(0)}, {S(0), P}), move_kind::pad_with_zeros));  // tp cuts within dp's slices
static_assert(planned({S(0), S(0)}, {P, S(0)}).collectives() == 1);  // dp's slices lie across those of tp

// 64 ranks along three axes, within the default limit of g++ for constant evaluation.
constexpr auto of_64_ranks = plan_redistribution<2, 3>({64, 64}, {4, 4, 4}, {S(0), S(0), S(1)}, {S(1), S(1), S(0)}, 8);
static_assert(of_64_ranks.size == 1 && of_64_ranks.moves[0].along == 7U);
constexpr auto uneven =
    plan_redistribution<3, 3>({63, 31, 12}, {4, 4, 4}, {S(0), S(1), P}, {S(1), S(0), R}, sizeof(float));
static_assert(uneven.collectives() == 2);

// A tensor without elements moves nothing.
static_assert(is_plan(plan_redistribution<2, 2>({0, 5}, {2, 4}, {R, S(1)}, {R, R}, 4), move_kind::slice));
static_assert(is_plan(plan_redistribution<2, 2>({0, 5}, {2, 4}, {S(0), S(1)}, {S(1), R}, 4), move_kind::slice));

}  // namespace
