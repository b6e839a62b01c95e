// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// All-to-all: with messages between pairs, or directly if ranks can read each other's memory.
#pragma once

#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// In round k, rank r exchanges blocks with rank k-r (modulo p): each rank has one partner at a time, which may be the
/// rank itself. p-1 messages per rank.
struct pairwise_all_to_all {
  /// Correct also if `in` and `out` are the same memory: a received block waits in scratch until the old one is sent.
  bool in_place = false;

  static constexpr const char* name() noexcept { return "pairwise"; }
  static constexpr plan::collective collective() noexcept { return {collective_kind::all_to_all, 0}; }

  constexpr plan::shape shape(int ranks) const noexcept {
    return {.chunks_per_block = 1, .scratch = in_place && ranks > 1 ? 1U : 0U};
  }

  constexpr unsigned length(int ranks, int /*rank*/, unsigned /*lane*/) const noexcept {
    return 1 + steps() * static_cast<unsigned>(ranks - 1);
  }

  constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) const noexcept {
    const int alone = 2 * rank % ranks;  // the round in which this rank is its own partner
    const unsigned before = steps() * static_cast<unsigned>(alone);
    const auto own = static_cast<std::uint32_t>(rank);
    if (i == before) return copy({own}, in(own), out(own));
    if (i > before) i += steps() - 1;
    const int difference = static_cast<int>(i / steps()) - rank;
    const int peer = difference < 0 ? difference + ranks : difference;
    const auto block = static_cast<std::uint32_t>(peer);
    switch (i % steps()) {
      case 0: return send(peer, {block}, in(block));
      case 1: return receive(peer, {block}, in_place ? scratch(0) : out(block));
      default: return joined(copy({block}, scratch(0), out(block)));
    }
  }

 private:
  constexpr unsigned steps() const noexcept { return in_place ? 3 : 2; }
};

/// Each rank reads its block from all peers, beginning with its right neighbour. Two rounds of flags.
struct direct_all_to_all {
  /// Correct also if `in` and `out` are the same memory: blocks wait in scratch until all peers have read theirs.
  bool in_place = false;

  static constexpr const char* name() noexcept { return "direct"; }
  static constexpr plan::collective collective() noexcept { return {collective_kind::all_to_all, 0}; }

  constexpr plan::shape shape(int ranks) const noexcept {
    return {
        .chunks_per_block = 1, .scratch = in_place ? static_cast<std::uint32_t>(ranks - 1) : 0U, .peer_pointers = true};
  }

  constexpr unsigned length(int ranks, int /*rank*/, unsigned /*lane*/) const noexcept {
    const auto peers = static_cast<unsigned>(ranks - 1);
    return ranks == 1 ? 1U : 5U + (in_place ? 2 * peers : peers);
  }

  constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) const noexcept {
    const auto own = static_cast<std::uint32_t>(rank);
    const auto peers = static_cast<unsigned>(ranks - 1);
    if (ranks == 1) return copy({0}, in(0), out(0));
    if (i == 0) return signal(all_peers, 0);
    if (i == 1) return copy({own}, in(own), out(own));
    if (i == 2) return wait(all_peers, 0);
    i -= 3;
    if (i == peers) return signal(all_peers, 1);
    if (i == peers + 1) return wait(all_peers, 1);
    const bool loads = i < peers;
    const unsigned turn = loads ? i : i - peers - 2;
    const int next = rank + 1 + static_cast<int>(turn);
    const int peer = next < ranks ? next : next - ranks;
    const auto block = static_cast<std::uint32_t>(peer);
    if (!loads) return copy({block}, scratch(turn), out(block));
    return load(peer, {block}, in(own), in_place ? scratch(turn) : out(block));
  }
};

}  // namespace plan
HOCKET_END_NAMESPACE
