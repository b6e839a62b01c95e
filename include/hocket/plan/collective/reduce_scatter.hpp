// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Reduce-scatter: over messages around a ring or between all pairs, or directly where ranks can read each other's memory.
#pragma once

#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// A block travels from the rank after its owner once around the ring, each rank combining its contribution with it.
/// p-1 messages per rank. Partial results alternate between two scratch slots; a slot may be overwritten when the
/// message that was sent from it has drained.
struct ring_reduce_scatter {
  static constexpr const char* name() noexcept { return "ring"; }
  static constexpr plan::goal goal() noexcept { return {goal_kind::reduce_scatter, 0}; }

  static constexpr plan::shape shape(int ranks) noexcept {
    return {.pieces = 1,
            .scratch = ranks <= 2   ? 0U
                       : ranks == 3 ? 1U
                                    : 2U,
            .order = ranks <= 2 ? combination_order::rank_order : combination_order::any_order};
  }

  static constexpr unsigned length(int ranks, int /*rank*/, unsigned /*lane*/) noexcept {
    return ranks == 1 ? 1U : 2 * static_cast<unsigned>(ranks - 1);
  }

  static constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) noexcept {
    if (ranks == 1) return copy({0}, in(0), out(0));
    const int left = rank == 0 ? ranks - 1 : rank - 1;
    const int right = rank + 1 == ranks ? 0 : rank + 1;
    const int step = static_cast<int>(i / 2);
    const bool last = step == ranks - 2;
    const auto slot = static_cast<std::uint32_t>(step % 2);
    if (i % 2 == 0) {
      const std::uint32_t block = sent(ranks, rank, step);
      const action passed_on = send(right, {block}, step == 0 ? in(block) : scratch(1 - slot));
      return step >= 2 && !last ? joined(passed_on) : passed_on;
    }
    const std::uint32_t block = sent(ranks, left, step);
    return receive_reduce(left, {block}, in(block), last ? out(block) : scratch(slot),
                          left < rank ? operand_order::message_first : operand_order::local_first);
  }

 private:
  /// The block that `rank` sends in `step`.
  static constexpr std::uint32_t sent(int ranks, int rank, int step) noexcept {
    const int block = rank - 1 - step;
    return static_cast<std::uint32_t>(block >= 0 ? block : block + ranks);
  }
};

/// Each rank sends every other its block of the contribution, and combines what comes for its own: first the ranks below
/// it, downwards, before its own operand, then those above it, upwards, after it. So operands stay in rank order. p-1
/// messages per rank, all of them on their way from the beginning.
struct pairwise_reduce_scatter {
  static constexpr const char* name() noexcept { return "pairwise"; }
  static constexpr plan::goal goal() noexcept { return {goal_kind::reduce_scatter, 0}; }

  static constexpr plan::shape shape(int /*ranks*/) noexcept {
    return {.pieces = 1, .order = combination_order::rank_order};
  }

  static constexpr unsigned length(int ranks, int /*rank*/, unsigned /*lane*/) noexcept {
    return ranks == 1 ? 1U : 2 * static_cast<unsigned>(ranks - 1);
  }

  static constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) noexcept {
    if (ranks == 1) return copy({0}, in(0), out(0));
    const int peers = ranks - 1;
    if (i < static_cast<unsigned>(peers)) {
      const int next = rank + 1 + static_cast<int>(i);
      const int peer = next < ranks ? next : next - ranks;
      const auto theirs = static_cast<std::uint32_t>(peer);
      return send(peer, {theirs}, in(theirs));
    }
    const int turn = static_cast<int>(i) - peers;
    const bool below = turn < rank;
    const auto own = static_cast<std::uint32_t>(rank);
    return receive_reduce(below ? rank - 1 - turn : turn + 1, {own}, turn == 0 ? in(own) : out(own), out(own),
                          below ? operand_order::message_first : operand_order::local_first);
  }
};

/// Each rank reads its block of all contributions, and combines them in rank order. Two rounds of flags.
struct direct_reduce_scatter {
  static constexpr const char* name() noexcept { return "direct"; }
  static constexpr plan::goal goal() noexcept { return {goal_kind::reduce_scatter, 0}; }

  static constexpr plan::shape shape(int /*ranks*/) noexcept {
    return {.pieces = 1, .peer_pointers = true, .order = combination_order::rank_order};
  }

  static constexpr unsigned length(int ranks, int /*rank*/, unsigned /*lane*/) noexcept { return ranks == 1 ? 1 : 5; }

  static constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) noexcept {
    const auto own = static_cast<std::uint32_t>(rank);
    if (ranks == 1) return copy({0}, in(0), out(0));
    switch (i) {
      case 0: return signal(all_peers, 0);
      case 1: return wait(all_peers, 0);
      case 2: return load_reduce({own}, in(own), out(own));
      case 3: return signal(all_peers, 1);
      default: return wait(all_peers, 1);
    }
  }
};

}  // namespace plan
HOCKET_END_NAMESPACE
