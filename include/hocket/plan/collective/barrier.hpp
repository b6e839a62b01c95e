// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Barrier: no rank leaves before every rank has entered.
#pragma once

#include <hocket/plan/ceiling_log2.hpp>
#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// In round k, each rank sends a message to the rank 2^k further on. It reports that the sender has entered, and all
/// ranks that the sender has learned of. log2(p) rounds of messages without data.
struct dissemination_barrier {
  static constexpr const char* name() noexcept { return "dissemination"; }
  static constexpr plan::collective collective() noexcept { return {collective_kind::barrier, 0}; }
  static constexpr plan::shape shape(int /*ranks*/) noexcept {
    return {.chunks_per_block = 1, .symmetry = rank_symmetry::rotation};
  }

  static constexpr unsigned length(int ranks, int /*rank*/, unsigned /*lane*/) noexcept {
    return 2 * static_cast<unsigned>(ceiling_log2(ranks));
  }

  static constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) noexcept {
    const int distance = 1 << (i / 2);
    if (i % 2 == 0) return send(distance < ranks - rank ? rank + distance : rank - (ranks - distance), {0, 0}, {});
    return receive(rank >= distance ? rank - distance : rank + (ranks - distance), {0, 0}, {});
  }
};

}  // namespace plan
HOCKET_END_NAMESPACE
