// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// All-reduce for large vectors: each rank communicates only with its two neighbours and moves as little as possible.
#pragma once

#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// The vector has a chunk per rank. Partial results travel once around the ring, then the results do.
/// 2(p-1) messages per rank, each of 1/p of the vector. Chunk c is combined from rank c on around the ring, which is
/// rank order for two ranks only.
///
/// No join is needed: a chunk returns to a rank only after the right neighbour has received it.
struct ring_all_reduce {
  static constexpr const char* name() noexcept { return "ring"; }
  static constexpr plan::collective collective() noexcept { return {collective_kind::all_reduce, 0}; }

  static constexpr plan::shape shape(int ranks) noexcept {
    return {.chunks_per_block = static_cast<std::uint32_t>(ranks),
            .order = ranks <= 2 ? combination_order::fixed_tree : combination_order::any_order,
            .symmetry = rank_symmetry::rotation};
  }

  static constexpr unsigned length(int ranks, int /*rank*/, unsigned /*lane*/) noexcept {
    return ranks == 1 ? 1U : 4 * static_cast<unsigned>(ranks - 1);
  }

  static constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) noexcept {
    if (ranks == 1) return copy({0}, in(0), out(0));
    const int left = rank == 0 ? ranks - 1 : rank - 1;
    const int right = rank + 1 == ranks ? 0 : rank + 1;
    const int step = static_cast<int>(i / 2);
    if (i % 2 == 0) {
      const std::uint32_t c = chunk_after(ranks, rank, step);
      return send(right, {c}, step == 0 ? in(c) : out(c));
    }
    const std::uint32_t c = chunk_after(ranks, left, step);
    if (step >= ranks - 1) return receive(left, {c}, out(c));
    return receive_reduce(left, {c}, in(c), out(c),
                          left < rank ? operand_order::message_first : operand_order::local_first);
  }

 private:
  /// What `rank` sends in `step`.
  static constexpr std::uint32_t chunk_after(int ranks, int rank, int step) noexcept {
    const int c = rank - step;
    return static_cast<std::uint32_t>(c >= 0 ? c : c + ranks >= 0 ? c + ranks : c + 2 * ranks);
  }
};

}  // namespace plan
HOCKET_END_NAMESPACE
