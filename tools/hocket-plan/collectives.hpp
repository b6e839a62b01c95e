// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The algorithms of collectives and their names. Prints, draws, proves and prices them.
#pragma once

#include "files.hpp"

#include <hocket/draw/plan.hpp>
#include <hocket/plan/collective/all_gather.hpp>
#include <hocket/plan/collective/all_to_all.hpp>
#include <hocket/plan/collective/barrier.hpp>
#include <hocket/plan/collective/broadcast.hpp>
#include <hocket/plan/collective/double_tree.hpp>
#include <hocket/plan/collective/halving_doubling.hpp>
#include <hocket/plan/collective/one_shot.hpp>
#include <hocket/plan/collective/push.hpp>
#include <hocket/plan/collective/recursive_doubling.hpp>
#include <hocket/plan/collective/reduce_scatter.hpp>
#include <hocket/plan/collective/ring_all_reduce.hpp>
#include <hocket/plan/collective/two_shot.hpp>
#include <hocket/plan/price.hpp>
#include <hocket/plan/prove.hpp>

#include <cstddef>
#include <iostream>
#include <map>
#include <string>

namespace plans {

namespace plan = hocket::plan;

/// The algorithm to show, and which outputs to show.
struct collective_request {
  std::string name;
  int ranks = 4;
  int root = 0;
  std::size_t bytes = std::size_t{1} << 20;
  plan::cost_model machine = plan::example_machine;
  bool print = false;
  bool draw = false;
  std::string svg;
};

/// Returns all algorithms by the names that drawings use, with the engine's default number of pieces.
inline std::map<std::string, plan::any_algorithm> collectives(int root = 0) {
  return {{"ring_all_reduce", plan::ring_all_reduce{}},
          {"recursive_doubling", plan::recursive_doubling{}},
          {"halving_doubling", plan::halving_doubling{}},
          {"double_tree", plan::double_tree{.chunks_per_half = 4}},
          {"one_shot", plan::one_shot{}},
          {"two_shot", plan::two_shot{}},
          {"push_all_reduce", plan::push_all_reduce{}},
          {"ring_reduce_scatter", plan::ring_reduce_scatter{}},
          {"pairwise_reduce_scatter", plan::pairwise_reduce_scatter{}},
          {"recursive_halving_reduce_scatter", plan::recursive_halving_reduce_scatter{}},
          {"direct_reduce_scatter", plan::direct_reduce_scatter{}},
          {"ring_all_gather", plan::ring_all_gather{}},
          {"pairwise_all_gather", plan::pairwise_all_gather{}},
          {"direct_all_gather", plan::direct_all_gather{}},
          {"pairwise_all_to_all", plan::pairwise_all_to_all{}},
          {"direct_all_to_all", plan::direct_all_to_all{}},
          {"binomial_broadcast", plan::binomial_broadcast{root}},
          {"direct_broadcast", plan::direct_broadcast{root}},
          {"binomial_load_broadcast", plan::binomial_load_broadcast{root}},
          {"dissemination_barrier", plan::dissemination_barrier{}}};
}

inline std::string price_text(const plan::any_algorithm& found, const collective_request& wanted) {
  const plan::cost cost = plan::price(found, wanted.ranks, wanted.bytes, wanted.machine);
  return plan::detail::time_text(cost.seconds) + " for " + plan::detail::bytes_text(wanted.bytes) + ", " +
         std::to_string(cost.messages) + " messages, " + plan::detail::bytes_text(cost.bytes) +
         " between ranks, at most " + plan::detail::bytes_text(cost.bytes_out_most) + " from one";
}

/// Shows the requested outputs. Returns true if the proof of the algorithm succeeds.
inline bool show_collective(const collective_request& wanted) {
  if (wanted.ranks < 1) throw usage_error("--ranks must be at least 1");
  if (wanted.root < 0 || wanted.root >= wanted.ranks) {
    throw usage_error("--root must be one of the " + std::to_string(wanted.ranks) + " ranks, counted from 0");
  }
  const auto all = collectives(wanted.root);
  const auto found = all.find(wanted.name);
  if (found == all.end()) {
    throw usage_error("there is no algorithm '" + wanted.name + "'; `hocket-plan list` shows all names");
  }
  const plan::any_algorithm& shown = found->second;
  const plan::proof proven = plan::prove(shown, wanted.ranks);
  std::cout << wanted.name << " over " << wanted.ranks << " ranks: " << to_string(shown.collective().kind) << '\n'
            << "  proof: " << proven.message() << '\n'
            << "  price: " << price_text(shown, wanted) << '\n';
  if (wanted.print) std::cout << '\n' << plan::to_string(shown, wanted.ranks);
  if (wanted.draw) std::cout << '\n' << plan::draw_text(shown, wanted.ranks);
  if (!wanted.svg.empty()) write_file(wanted.svg, plan::draw_svg(shown, wanted.ranks, wanted.bytes, wanted.machine));
  return proven.ok;
}

}  // namespace plans
