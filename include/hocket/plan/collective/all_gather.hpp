// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// All-gather: with messages around a ring or between all pairs, or directly if ranks can read each other's memory.
#pragma once

#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// Blocks travel once around the ring. p-1 messages per rank. No block is overwritten, so no join is needed.
struct ring_all_gather {
  static constexpr const char* name() noexcept { return "ring"; }
  static constexpr plan::collective collective() noexcept { return {collective_kind::all_gather, 0}; }
  static constexpr plan::shape shape(int /*ranks*/) noexcept {
    return {.chunks_per_block = 1, .symmetry = rank_symmetry::rotation};
  }

  static constexpr unsigned length(int ranks, int /*rank*/, unsigned /*lane*/) noexcept {
    return 1 + 2 * static_cast<unsigned>(ranks - 1);
  }

  static constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) noexcept {
    const auto own = static_cast<std::uint32_t>(rank);
    const int left = rank == 0 ? ranks - 1 : rank - 1;
    const int right = rank + 1 == ranks ? 0 : rank + 1;
    // The rank sends its own block before it copies it.
    if (i == (ranks == 1 ? 0U : 1U)) return copy({own}, in(own), out(own));
    if (i == 0) return send(right, {own}, in(own));
    const int step = static_cast<int>(i / 2);
    const std::uint32_t block = i % 2 == 0 ? sent(ranks, left, step - 1) : sent(ranks, rank, step);
    return i % 2 == 0 ? receive(left, {block}, out(block)) : send(right, {block}, out(block));
  }

 private:
  /// The block that `rank` sends in `step`.
  static constexpr std::uint32_t sent(int ranks, int rank, int step) noexcept {
    return static_cast<std::uint32_t>(rank >= step ? rank - step : rank - step + ranks);
  }
};

/// Each rank sends its block to every other rank, beginning with its right neighbour. p-1 messages per rank, all in
/// flight from the beginning, so that no rank waits for another one to forward a block.
struct pairwise_all_gather {
  static constexpr const char* name() noexcept { return "pairwise"; }
  static constexpr plan::collective collective() noexcept { return {collective_kind::all_gather, 0}; }
  static constexpr plan::shape shape(int /*ranks*/) noexcept {
    return {.chunks_per_block = 1, .symmetry = rank_symmetry::rotation};
  }

  static constexpr unsigned length(int ranks, int /*rank*/, unsigned /*lane*/) noexcept {
    return 1 + 2 * static_cast<unsigned>(ranks - 1);
  }

  static constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) noexcept {
    const auto own = static_cast<std::uint32_t>(rank);
    const auto peers = static_cast<unsigned>(ranks - 1);
    if (i == peers) return copy({own}, in(own), out(own));
    if (i < peers) {
      const int next = rank + 1 + static_cast<int>(i);
      return send(next < ranks ? next : next - ranks, {own}, in(own));
    }
    const int before = rank - static_cast<int>(i - peers);
    const int peer = before >= 0 ? before : before + ranks;
    const auto theirs = static_cast<std::uint32_t>(peer);
    return receive(peer, {theirs}, out(theirs));
  }
};

/// Each rank reads all blocks from their owners. Two rounds of flags; a rank copies its own block during the first.
struct direct_all_gather {
  static constexpr const char* name() noexcept { return "direct"; }
  static constexpr plan::collective collective() noexcept { return {collective_kind::all_gather, 0}; }
  static constexpr plan::shape shape(int /*ranks*/) noexcept {
    return {.chunks_per_block = 1, .peer_pointers = true, .symmetry = rank_symmetry::rotation};
  }

  static constexpr unsigned length(int ranks, int /*rank*/, unsigned /*lane*/) noexcept {
    return ranks == 1 ? 1U : static_cast<unsigned>(ranks) + 4U;
  }

  static constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) noexcept {
    const auto own = static_cast<std::uint32_t>(rank);
    const auto loads = static_cast<unsigned>(ranks - 1);
    if (ranks == 1) return copy({0}, in(0), out(0));
    if (i == 0) return signal(all_peers, 0);
    if (i == 1) return copy({own}, in(own), out(own));
    if (i == 2) return wait(all_peers, 0);
    i -= 3;
    if (i == loads) return signal(all_peers, 1);
    if (i > loads) return wait(all_peers, 1);
    const int next = rank + 1 + static_cast<int>(i);
    const int peer = next < ranks ? next : next - ranks;
    const auto theirs = static_cast<std::uint32_t>(peer);
    return load(peer, {theirs}, in(theirs), out(theirs));
  }
};

}  // namespace plan
HOCKET_END_NAMESPACE
