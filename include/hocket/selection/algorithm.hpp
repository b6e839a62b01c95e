// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The names by which callers choose an algorithm: `with(ring)`, `with(double_tree(32))`, `with(algorithm(my_plan))`.
///
/// A name stands for at most one plan per collective. `plan_of` is that table; naming an algorithm that a collective
/// does not have is a compile error.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>
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
#include <hocket/plan/plan.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <utility>

HOCKET_BEGIN_NAMESPACE

namespace detail {

/// Base of the algorithm properties.
struct algorithm_property {
  using kind = hocket::kind::algorithm;
};

}  // namespace detail

struct ring_t : detail::algorithm_property {};
struct recursive_doubling_t : detail::algorithm_property {};
struct halving_doubling_t : detail::algorithm_property {};
struct one_shot_t : detail::algorithm_property {};
struct two_shot_t : detail::algorithm_property {};
struct push_t : detail::algorithm_property {};
struct direct_t : detail::algorithm_property {};
struct pairwise_t : detail::algorithm_property {};
struct recursive_halving_t : detail::algorithm_property {};
struct binomial_t : detail::algorithm_property {};
struct flat_t : detail::algorithm_property {};
struct dissemination_t : detail::algorithm_property {};

/// Type of `double_tree`.
struct double_tree_t : detail::algorithm_property {
  std::uint32_t chunks_per_half = 16;  ///< pieces of each half of the vector
  /// Sets the number of pieces in which each half of the vector passes through its tree.
  constexpr double_tree_t operator()(std::uint32_t count) const noexcept { return {{}, count}; }
};

inline constexpr ring_t ring{};                              ///< neighbours only; least traffic
inline constexpr recursive_doubling_t recursive_doubling{};  ///< fewest steps; whole vector in each
inline constexpr halving_doubling_t halving_doubling{};      ///< few steps and least traffic
inline constexpr double_tree_t double_tree{};                ///< two pipelined trees
inline constexpr one_shot_t one_shot{};                      ///< each rank reads everything; needs peer pointers
inline constexpr two_shot_t two_shot{};                      ///< each rank reduces a share; needs peer pointers
inline constexpr push_t push{};          ///< a few bytes, together with their flag; needs peer pointers
inline constexpr direct_t direct{};      ///< each rank reads what it needs; needs peer pointers
inline constexpr pairwise_t pairwise{};  ///< a message between each pair of ranks
inline constexpr recursive_halving_t recursive_halving{};  ///< half of the remaining blocks in each step
inline constexpr binomial_t binomial{};                    ///< a tree that doubles in each step
inline constexpr flat_t flat{};                            ///< a message between the root and each other rank
inline constexpr dissemination_t dissemination{};          ///< barrier in log2 p rounds

/// A user-defined plan. See plan/plan.hpp and plan/listed.hpp; prove it before you run it: plan/prove.hpp.
struct own_plan : detail::algorithm_property {
  plan::any_algorithm chosen;  ///< the plan
};

/// Runs a call by a user-defined plan: `with(algorithm(plan))`.
template <plan::algorithm Plan>
own_plan algorithm(Plan chosen) {
  return {{}, plan::any_algorithm(std::move(chosen))};
}

namespace detail {

/// The plan that an algorithm's name stands for. There is no member for an algorithm that the collective does not have.
/// The number is the root, which only collectives with a root use.
template <plan::collective_kind Kind>
struct plan_of;

template <>
struct plan_of<plan::collective_kind::all_reduce> {
  static constexpr auto get(ring_t, int) { return plan::ring_all_reduce{}; }
  static constexpr auto get(recursive_doubling_t, int) { return plan::recursive_doubling{}; }
  static constexpr auto get(halving_doubling_t, int) { return plan::halving_doubling{}; }
  static constexpr auto get(double_tree_t tree, int) { return plan::double_tree{tree.chunks_per_half}; }
  static constexpr auto get(one_shot_t, int) { return plan::one_shot{}; }
  static constexpr auto get(two_shot_t, int) { return plan::two_shot{}; }
  static constexpr auto get(push_t, int) { return plan::push_all_reduce{}; }
};

template <>
struct plan_of<plan::collective_kind::reduce_scatter> {
  static constexpr auto get(ring_t, int) { return plan::ring_reduce_scatter{}; }
  static constexpr auto get(pairwise_t, int) { return plan::pairwise_reduce_scatter{}; }
  static constexpr auto get(recursive_halving_t, int) { return plan::recursive_halving_reduce_scatter{}; }
  static constexpr auto get(direct_t, int) { return plan::direct_reduce_scatter{}; }
};

template <>
struct plan_of<plan::collective_kind::all_gather> {
  static constexpr auto get(ring_t, int) { return plan::ring_all_gather{}; }
  static constexpr auto get(pairwise_t, int) { return plan::pairwise_all_gather{}; }
  static constexpr auto get(direct_t, int) { return plan::direct_all_gather{}; }
};

template <>
struct plan_of<plan::collective_kind::all_to_all> {
  static constexpr auto get(pairwise_t, int) { return plan::pairwise_all_to_all{}; }
  static constexpr auto get(direct_t, int) { return plan::direct_all_to_all{}; }
};

template <>
struct plan_of<plan::collective_kind::broadcast> {
  static constexpr auto get(binomial_t, int root) { return plan::binomial_broadcast{root}; }
  static constexpr auto get(direct_t, int root) { return plan::direct_broadcast{root}; }
};

template <>
struct plan_of<plan::collective_kind::reduce> {
  static constexpr auto get(binomial_t, int root) { return plan::binomial_reduce{root}; }
  static constexpr auto get(ring_t, int root) { return plan::ring_reduce{root}; }
  static constexpr auto get(direct_t, int root) { return plan::direct_reduce{root}; }
};

template <>
struct plan_of<plan::collective_kind::gather> {
  static constexpr auto get(flat_t, int root) { return plan::flat_gather{root}; }
  static constexpr auto get(binomial_t, int root) { return plan::binomial_gather{root}; }
  static constexpr auto get(direct_t, int root) { return plan::direct_gather{root}; }
};

template <>
struct plan_of<plan::collective_kind::scatter> {
  static constexpr auto get(flat_t, int root) { return plan::flat_scatter{root}; }
  static constexpr auto get(binomial_t, int root) { return plan::binomial_scatter{root}; }
  static constexpr auto get(direct_t, int root) { return plan::direct_scatter{root}; }
};

template <>
struct plan_of<plan::collective_kind::barrier> {
  static constexpr auto get(dissemination_t, int) { return plan::dissemination_barrier{}; }
};

/// True if the collective has this algorithm.
template <plan::collective_kind Kind, class Algorithm>
concept has_algorithm =
    std::same_as<Algorithm, own_plan> || requires(Algorithm named) { plan_of<Kind>::get(named, 0); };

/// Returns the weakest order in which the algorithm combines contributions, for any number of ranks and any root. For
/// user-defined plans the order is known only at run time.
template <plan::collective_kind Kind, class Algorithm>
constexpr plan::combination_order order_of() {
  auto weakest = plan::combination_order::fixed_tree;
  if constexpr (requires(Algorithm named) { plan_of<Kind>::get(named, 0); }) {
    constexpr bool is_rooted = plan::collective{Kind, 0}.has_root();
    for (int ranks = 1; ranks <= 8; ++ranks) {
      const int root = is_rooted ? ranks / 2 : 0;  // an end of a chain would have a stronger order
      weakest = std::max(weakest, plan_of<Kind>::get(Algorithm{}, root).shape(ranks).order);
    }
  }
  return weakest;
}

}  // namespace detail

HOCKET_END_NAMESPACE
