// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The algorithms of collectives and their names. Prints, draws, proves and prices them.
#pragma once

#include "files.hpp"
#include "limits.hpp"
#include "note.hpp"

#include <hocket/draw/plan.hpp>
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
#include <hocket/plan/price.hpp>
#include <hocket/plan/proof_size.hpp>
#include <hocket/plan/prove.hpp>

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <limits>
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
  bool price_alone = false;
  std::uint64_t most_memory = std::uint64_t{1} << 30;      ///< of a proof
  std::uint64_t most_actions = plan::most_priced_actions;  ///< simulated for a price
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
          {"binomial_reduce", plan::binomial_reduce{root}},
          {"ring_reduce", plan::ring_reduce{root}},
          {"direct_reduce", plan::direct_reduce{root}},
          {"flat_gather", plan::flat_gather{root}},
          {"binomial_gather", plan::binomial_gather{root}},
          {"direct_gather", plan::direct_gather{root}},
          {"flat_scatter", plan::flat_scatter{root}},
          {"binomial_scatter", plan::binomial_scatter{root}},
          {"direct_scatter", plan::direct_scatter{root}},
          {"dissemination_barrier", plan::dissemination_barrier{}}};
}

inline std::string count_text(std::uint64_t bytes) {
  const bool overflows = bytes == std::numeric_limits<std::uint64_t>::max();
  return overflows ? "more than 16 EiB" : plan::detail::bytes_text(bytes);
}

/// Returns the vector that the price is for: the requested one, or one that is rounded up.
inline std::string vector_text(const plan::any_algorithm& found, const collective_request& wanted,
                               plan::cost_bound bound) {
  const std::string asked = plan::detail::bytes_text(wanted.bytes);
  if (bound != plan::cost_bound::at_most) return asked;
  const plan::layout where = plan::layout_of(found, wanted.ranks, wanted.bytes);
  return asked + " (rounded up to " + std::to_string(where.chunk_count()) + " chunks of " +
         plan::detail::bytes_text(where.largest_chunk()) + ")";
}

inline std::string price_text(const plan::any_algorithm& found, const collective_request& wanted) {
  const plan::cost cost = plan::price(found, wanted.ranks, wanted.bytes, wanted.machine, wanted.most_actions);
  const bool of_some = cost.bound == plan::cost_bound::at_least_of_some;
  std::string text = plan::detail::time_text(cost.seconds) + " for " + vector_text(found, wanted, cost.bound);
  if (cost.bound == plan::cost_bound::at_most) text = "at most " + text;
  if (cost.bound == plan::cost_bound::at_least) text = "at least " + text + ", if all ranks keep a common pace";
  if (of_some) {
    return "at least " + text + ", the time for which the busiest of some ranks works; one of them sends " +
           std::to_string(cost.messages_most) + " messages, one " + count_text(cost.bytes_out_most) +
           " (--most-actions " + std::to_string(cost.actions) + " simulates all ranks)";
  }
  return text + ", " + std::to_string(cost.messages) + " messages, " + count_text(cost.bytes) +
         " between ranks, at most " + count_text(cost.bytes_out_most) + " from one";
}

/// Throws if a text or a drawing would be too long to be written, or to be read.
inline void require_short_output(const plan::any_algorithm& shown, const collective_request& wanted) {
  const char* const option = wanted.print ? "--print" : wanted.draw ? "--draw" : wanted.svg.empty() ? nullptr : "--svg";
  if (option == nullptr) return;
  std::uint64_t parts = plan::action_count(shown, wanted.ranks);
  if (parts <= most_shown) parts += plan::transfer_count(shown, wanted.ranks);
  if (parts <= most_shown) return;
  throw usage_error(std::string(option) + " would show " + std::to_string(parts) +
                    " actions and messages, and shows at most " + std::to_string(most_shown) +
                    ": choose fewer --ranks");
}

/// Proves the algorithm if the proof fits in the allowed memory. Prints the result, and returns whether it succeeds.
inline bool show_proof(const plan::any_algorithm& shown, const collective_request& wanted) {
  const plan::proof_size size = plan::size_of_proof(shown, wanted.ranks, wanted.most_memory);
  if (size.bytes > wanted.most_memory) {
    std::cout << "  proof: not attempted: it needs at least " << count_text(size.bytes) << " of memory for "
              << size.actions << " actions, and --most-memory is " << count_text(wanted.most_memory)
              << ": prove fewer --ranks, allow more memory, or ask for the price alone by --no-proof\n";
    return false;
  }
  const plan::proof proven = [&] {
    const note progress("proving", size.actions);
    return plan::prove(shown, wanted.ranks);
  }();
  std::cout << "  proof: " << proven.message() << '\n';
  return proven.ok;
}

/// Shows the requested outputs. Returns true if the proof of the algorithm succeeds, or was not requested.
inline bool show_collective(const collective_request& wanted) {
  if (wanted.root >= wanted.ranks) {
    throw usage_error("--root must be one of the " + std::to_string(wanted.ranks) + " ranks, counted from 0");
  }
  const auto all = collectives(wanted.root);
  const auto found = all.find(wanted.name);
  if (found == all.end()) {
    throw usage_error("there is no algorithm '" + wanted.name + "'; `hocket-plan list` shows all names");
  }
  const plan::any_algorithm& shown = found->second;
  require_short_output(shown, wanted);
  const std::string price = price_text(shown, wanted);
  std::cout << wanted.name << " over " << wanted.ranks << " ranks: " << to_string(shown.collective().kind) << '\n';
  const bool proven = wanted.price_alone || show_proof(shown, wanted);
  std::cout << "  price: " << price << '\n';
  if (wanted.print) std::cout << '\n' << plan::to_string(shown, wanted.ranks);
  if (wanted.draw) std::cout << '\n' << plan::draw_text(shown, wanted.ranks);
  if (!wanted.svg.empty()) write_file(wanted.svg, plan::draw_svg(shown, wanted.ranks, wanted.bytes, wanted.machine));
  return proven;
}

}  // namespace plans
