// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The plans that streams run, and their results in the host's engine.
#pragma once

#include "support/elements.hpp"

#include <hocket/collective/all_gather.hpp>
#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/all_to_all.hpp>
#include <hocket/collective/broadcast.hpp>
#include <hocket/collective/reduce_scatter.hpp>
#include <hocket/group/local.hpp>
#include <hocket/plan/collective/all_gather.hpp>
#include <hocket/plan/collective/all_to_all.hpp>
#include <hocket/plan/collective/broadcast.hpp>
#include <hocket/plan/collective/double_tree.hpp>
#include <hocket/plan/collective/halving_doubling.hpp>
#include <hocket/plan/collective/one_shot.hpp>
#include <hocket/plan/collective/recursive_doubling.hpp>
#include <hocket/plan/collective/reduce_scatter.hpp>
#include <hocket/plan/collective/ring_all_reduce.hpp>
#include <hocket/plan/collective/two_shot.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/selection/algorithm.hpp>

#include <cstddef>
#include <vector>

namespace hocket_test {

inline std::vector<hocket::plan::any_algorithm> plans_on(int ranks) {
  namespace plan = hocket::plan;
  std::vector<plan::any_algorithm> all{plan::one_shot{},
                                       plan::two_shot{},
                                       plan::ring_all_reduce{},
                                       plan::recursive_doubling{},
                                       plan::halving_doubling{},
                                       plan::double_tree{.chunks_per_half = 3},
                                       plan::ring_reduce_scatter{},
                                       plan::pairwise_reduce_scatter{},
                                       plan::recursive_halving_reduce_scatter{},
                                       plan::direct_reduce_scatter{},
                                       plan::ring_all_gather{},
                                       plan::pairwise_all_gather{},
                                       plan::direct_all_gather{},
                                       plan::pairwise_all_to_all{},
                                       plan::direct_all_to_all{}};
  for (const int root : {0, ranks - 1}) {
    all.emplace_back(plan::binomial_broadcast{root});
    all.emplace_back(plan::direct_broadcast{root});
    all.emplace_back(plan::binomial_load_broadcast{root});
  }
  return all;
}

/// True if the plan combines in rank order, as operations that do not commute need.
inline bool keeps_rank_order(const hocket::plan::any_algorithm& how, int ranks) {
  return !how.collective().reduces() || how.shape(ranks).order <= hocket::plan::combination_order::rank_order;
}

template <class T>
using vectors = std::vector<std::vector<T>>;  ///< of each rank

inline std::size_t elements(const hocket::plan::any_algorithm& how, hocket::plan::region where, std::size_t block,
                            int ranks) {
  const auto blocks = static_cast<std::size_t>(how.collective().blocks(ranks));
  const bool own =
      (how.collective().kind == hocket::plan::collective_kind::reduce_scatter && where == hocket::plan::region::out) ||
      (how.collective().kind == hocket::plan::collective_kind::all_gather && where == hocket::plan::region::in);
  return own ? block : block * blocks;
}

/// Results of all ranks on the host.
template <class T, class Op>
vectors<T> on_host(const hocket::plan::any_algorithm& how, int ranks, std::size_t block, const Op& op) {
  vectors<T> results(static_cast<std::size_t>(ranks));
  hocket::local::run(ranks, [&](auto comm) {
    const std::vector<T> in = samples<T>(comm.rank(), elements(how, hocket::plan::region::in, block, ranks));
    std::vector<T> out(elements(how, hocket::plan::region::out, block, ranks));
    const auto by = hocket::with(hocket::algorithm(how));
    switch (how.collective().kind) {
      case hocket::plan::collective_kind::all_reduce: hocket::all_reduce(comm, in, out, op, by); break;
      case hocket::plan::collective_kind::reduce_scatter: hocket::reduce_scatter(comm, in, out, op, by); break;
      case hocket::plan::collective_kind::all_gather: hocket::all_gather(comm, in, out, by); break;
      case hocket::plan::collective_kind::all_to_all: hocket::all_to_all(comm, in, out, by); break;
      default: out = in; hocket::broadcast(comm, out, hocket::root{how.collective().root}, by);
    }
    results[static_cast<std::size_t>(comm.rank())] = out;
  });
  return results;
}

}  // namespace hocket_test
