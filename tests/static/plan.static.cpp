// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The compiler proves plans. One assert per number of ranks: a loop would exceed the compiler's limit.
#include "plan/every_plan.hpp"

#include <hocket/plan/ceiling_log2.hpp>
#include <hocket/plan/listed.hpp>
#include <hocket/plan/prove.hpp>

namespace plan = hocket::plan;
using plan::prove;

static_assert(plan::ceiling_log2(0) == 0 && plan::ceiling_log2(1) == 0 && plan::ceiling_log2(2) == 1 &&
              plan::ceiling_log2(3) == 2 && plan::ceiling_log2(4) == 2 && plan::ceiling_log2(5) == 3 &&
              plan::ceiling_log2(65536) == 16 && plan::ceiling_log2(65537) == 17);

static_assert(prove(plan::ring_all_reduce{}, 1));
static_assert(prove(plan::ring_all_reduce{}, 2));
static_assert(prove(plan::ring_all_reduce{}, 8));
static_assert(prove(plan::ring_all_reduce{}, 16));
static_assert(prove(plan::recursive_doubling{}, 7));
static_assert(prove(plan::recursive_doubling{}, 16));
static_assert(prove(plan::halving_doubling{}, 16));
static_assert(prove(plan::double_tree{.chunks_per_half = 2}, 5));
static_assert(prove(plan::double_tree{.chunks_per_half = 4}, 16));
static_assert(prove(plan::ring_reduce_scatter{}, 16));
static_assert(prove(plan::pairwise_reduce_scatter{}, 16));
static_assert(prove(plan::recursive_halving_reduce_scatter{}, 16));
static_assert(prove(plan::ring_all_gather{}, 16));
static_assert(prove(plan::pairwise_all_gather{}, 16));
static_assert(prove(plan::pairwise_all_to_all{}, 16));
static_assert(prove(plan::binomial_broadcast{3}, 16));
static_assert(prove(plan::dissemination_barrier{}, 16));
static_assert(prove(plan::binomial_reduce{3}, 7));
static_assert(prove(plan::ring_reduce{3}, 5));
static_assert(prove(plan::binomial_gather{5}, 11));
static_assert(prove(plan::binomial_scatter{5}, 11));

// The results of a proof are constant expressions too.
static_assert(prove(plan::recursive_doubling{}, 4).order == plan::combination_order::fixed_tree);
static_assert(prove(plan::double_tree{}, 5).order == plan::combination_order::rank_order);
static_assert(prove(plan::ring_all_reduce{}, 4).order == plan::combination_order::any_order);
static_assert(prove(plan::ring_all_reduce{}, 4).same_on_all_ranks);

// Plans in place, and their violations.
static_assert(prove(plan::ring_all_reduce{}, 4, {.in_place = true}));
static_assert(prove(plan::for_in_place(plan::one_shot{}), 4, {.in_place = true}));
static_assert(prove(plan::one_shot{}, 4, {.in_place = true}).what == plan::violation::read_races_write);
static_assert(prove(plan::recursive_doubling{}, 2, {.in_place = true}).what == plan::violation::overwrites_send);

// The user-defined plan of the documentation: a chain.
struct chain_broadcast {
  static constexpr const char* name() { return "chain_broadcast"; }
  static constexpr plan::collective collective() { return {plan::collective_kind::broadcast, 0}; }
  static constexpr plan::shape shape(int) { return {.chunks_per_block = 1}; }
  static constexpr unsigned length(int ranks, int rank, unsigned) {
    return (rank > 0 ? 1U : 0U) + (rank + 1 < ranks ? 1U : 0U);
  }
  static constexpr plan::action at(int, int rank, unsigned, unsigned i) {
    return rank > 0 && i == 0 ? plan::receive(rank - 1, {0}, plan::out(0)) : plan::send(rank + 1, {0}, plan::out(0));
  }
};
static_assert(prove(chain_broadcast{}, 1));
static_assert(prove(chain_broadcast{}, 9));

// A chain in which rank 2 does not send.
struct broken_chain : chain_broadcast {
  static constexpr unsigned length(int ranks, int rank, unsigned lane) {
    return rank == 2 ? 1U : chain_broadcast::length(ranks, rank, lane);
  }
};
static_assert(prove(broken_chain{}, 3));
static_assert(prove(broken_chain{}, 4).what == plan::violation::never_sent);
static_assert(prove(broken_chain{}, 4).where.rank == 3);
