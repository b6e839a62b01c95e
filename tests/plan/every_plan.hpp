// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Visits the plans of plan/collective/, so that a test can cover all of them.
#pragma once

#include <hocket/plan/collective/all_gather.hpp>
#include <hocket/plan/collective/all_to_all.hpp>
#include <hocket/plan/collective/barrier.hpp>
#include <hocket/plan/collective/broadcast.hpp>
#include <hocket/plan/collective/double_tree.hpp>
#include <hocket/plan/collective/gather.hpp>
#include <hocket/plan/collective/halving_doubling.hpp>
#include <hocket/plan/collective/one_shot.hpp>
#include <hocket/plan/collective/push.hpp>
#include <hocket/plan/collective/recursive_doubling.hpp>
#include <hocket/plan/collective/reduce.hpp>
#include <hocket/plan/collective/reduce_scatter.hpp>
#include <hocket/plan/collective/ring_all_reduce.hpp>
#include <hocket/plan/collective/scatter.hpp>
#include <hocket/plan/collective/two_shot.hpp>
#include <hocket/plan/in_place.hpp>
#include <hocket/plan/plan.hpp>

namespace hocket_test {

/// Calls visit(plan) for each plan with a root.
template <class Visit>
void for_every_plan_with_root(int root, Visit visit) {
  namespace plan = hocket::plan;
  visit(plan::binomial_broadcast{root});
  visit(plan::direct_broadcast{root});
  visit(plan::binomial_load_broadcast{root});
  visit(plan::binomial_reduce{root});
  visit(plan::ring_reduce{root});
  visit(plan::direct_reduce{root});
  visit(plan::flat_gather{root});
  visit(plan::binomial_gather{root});
  visit(plan::direct_gather{root});
  visit(plan::flat_scatter{root});
  visit(plan::binomial_scatter{root});
  visit(plan::direct_scatter{root});
}

/// Calls visit(plan) for each plan that works on `ranks` ranks. Plans with a root are visited with several.
template <class Visit>
void for_every_plan(int ranks, Visit visit) {
  namespace plan = hocket::plan;
  visit(plan::ring_all_reduce{});
  visit(plan::recursive_doubling{});
  visit(plan::halving_doubling{});
  visit(plan::double_tree{.chunks_per_half = 1});
  visit(plan::double_tree{.chunks_per_half = 3});
  visit(plan::double_tree{});
  visit(plan::one_shot{});
  visit(plan::two_shot{});
  visit(plan::push_all_reduce{});
  visit(plan::ring_reduce_scatter{});
  visit(plan::pairwise_reduce_scatter{});
  visit(plan::recursive_halving_reduce_scatter{});
  visit(plan::direct_reduce_scatter{});
  visit(plan::ring_all_gather{});
  visit(plan::pairwise_all_gather{});
  visit(plan::direct_all_gather{});
  visit(plan::pairwise_all_to_all{});
  visit(plan::direct_all_to_all{});
  visit(plan::dissemination_barrier{});
  for (const int root : {0, ranks / 2, ranks - 1}) for_every_plan_with_root(root, visit);
}

}  // namespace hocket_test
