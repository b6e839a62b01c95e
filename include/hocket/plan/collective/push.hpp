// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// All-reduce for the smallest vectors: the contribution travels with its flag, and no rank waits at the end.
#pragma once

#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// Each rank writes its contribution to its place in every peer's inbox. It then combines the contributions in its
/// inbox and its own from `in`, in rank order. One round of flags.
struct push_all_reduce {
  static constexpr const char* name() noexcept { return "push"; }
  static constexpr plan::collective collective() noexcept { return {collective_kind::all_reduce, 0}; }

  static constexpr plan::shape shape(int /*ranks*/) noexcept {
    return {.chunks_per_block = 1,
            .peer_pointers = true,
            .order = combination_order::fixed_tree,
            .symmetry = rank_symmetry::rotation};
  }

  static constexpr unsigned length(int ranks, int /*rank*/, unsigned /*lane*/) noexcept { return ranks == 1 ? 1 : 3; }

  static constexpr action at(int ranks, int /*rank*/, unsigned /*lane*/, unsigned i) noexcept {
    if (ranks == 1) return copy({0}, in(0), out(0));
    switch (i) {
      case 0: return push(all_peers, {0}, in(0), 0);
      case 1: return wait_push(all_peers, 0);
      default: return load_reduce({0}, inbox(), out(0));
    }
  }
};

}  // namespace plan
HOCKET_END_NAMESPACE
