// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// All-reduce for larger vectors if ranks can read each other's memory: each rank combines one chunk, then every rank
/// reads the chunks of all others.
#pragma once

#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// Rank r combines chunk r; then it reads the other chunks, beginning with that of rank r + 1, so that not all ranks
/// read from the same rank at the same time. All ranks signal and wait first, and after both steps.
struct two_shot {
  static constexpr const char* name() noexcept { return "two_shot"; }
  static constexpr plan::collective collective() noexcept { return {collective_kind::all_reduce, 0}; }

  static constexpr plan::shape shape(int ranks) noexcept {
    return {.chunks_per_block = static_cast<std::uint32_t>(ranks),
            .peer_pointers = true,
            .order = combination_order::fixed_tree,
            .symmetry = rank_symmetry::rotation};
  }

  static constexpr unsigned length(int ranks, int /*rank*/, unsigned /*lane*/) noexcept {
    return ranks == 1 ? 1U : static_cast<unsigned>(ranks) + 6U;  // 3 signals, 3 waits, load_reduce, ranks - 1 loads
  }

  static constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) noexcept {
    if (ranks == 1) return copy({0}, in(0), out(0));
    const auto own = static_cast<std::uint32_t>(rank);
    const auto loads = static_cast<unsigned>(ranks - 1);
    switch (i) {
      case 0: return signal(all_peers, 0);
      case 1: return wait(all_peers, 0);
      case 2: return load_reduce({own}, in(own), out(own));
      case 3: return signal(all_peers, 1);
      case 4: return wait(all_peers, 1);
      default: break;
    }
    const unsigned loaded = i - 5;
    if (loaded == loads) return signal(all_peers, 2);
    if (loaded > loads) return wait(all_peers, 2);
    const int next = rank + 1 + static_cast<int>(loaded);
    const int peer = next < ranks ? next : next - ranks;
    const auto theirs = static_cast<std::uint32_t>(peer);
    return load(peer, {theirs}, out(theirs), out(theirs));
  }
};

}  // namespace plan
HOCKET_END_NAMESPACE
