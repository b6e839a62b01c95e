// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// All-reduce for small vectors if ranks can read each other's memory: every rank reads all contributions.
#pragma once

#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// Two rounds of flags; each rank reads p-1 vectors and combines them in rank order.
struct one_shot {
  /// Correct also if `in` and `out` are the same memory: the result waits in scratch until all peers have read.
  bool in_place = false;

  static constexpr const char* name() noexcept { return "one_shot"; }
  static constexpr plan::collective collective() noexcept { return {collective_kind::all_reduce, 0}; }

  constexpr plan::shape shape(int ranks) const noexcept {
    return {.chunks_per_block = 1,
            .scratch = in_place && ranks > 1 ? 1U : 0U,
            .peer_pointers = true,
            .order = combination_order::fixed_tree,
            .symmetry = rank_symmetry::rotation};
  }

  constexpr unsigned length(int ranks, int /*rank*/, unsigned /*lane*/) const noexcept {
    return ranks == 1 ? 1U : in_place ? 6U : 5U;
  }

  constexpr action at(int ranks, int /*rank*/, unsigned /*lane*/, unsigned i) const noexcept {
    if (ranks == 1) return copy({0}, in(0), out(0));
    switch (i) {
      case 0: return signal(all_peers, 0);
      case 1: return wait(all_peers, 0);
      case 2: return load_reduce({0}, in(0), in_place ? scratch(0) : out(0));
      case 3: return signal(all_peers, 1);
      case 4: return wait(all_peers, 1);
      default: return copy({0}, scratch(0), out(0));
    }
  }
};

}  // namespace plan
HOCKET_END_NAMESPACE
