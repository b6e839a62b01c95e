// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// All-to-all: with messages between pairs, or directly if ranks can read each other's memory.
#pragma once

#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// In round k, rank r exchanges blocks with rank k-r (modulo p), which may be the rank itself. p-1 messages per rank.
/// A rank sends up to 8 rounds ahead of what it receives. So ranks that share a core wait for each other once, not in
/// each round.
struct pairwise_all_to_all {
  /// Correct also if `in` and `out` are the same memory: a received block waits in scratch until the old one is sent.
  /// Then each rank has one partner at a time.
  bool in_place = false;

  static constexpr const char* name() noexcept { return "pairwise"; }
  static constexpr plan::collective collective() noexcept { return {collective_kind::all_to_all, 0}; }

  constexpr plan::shape shape(int ranks) const noexcept {
    return {.chunks_per_block = 1, .scratch = in_place && ranks > 1 ? 1U : 0U, .symmetry = rank_symmetry::exchange};
  }

  constexpr unsigned length(int ranks, int /*rank*/, unsigned /*lane*/) const noexcept {
    return 1 + (in_place ? 3U : 2U) * static_cast<unsigned>(ranks - 1);
  }

  constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) const noexcept {
    const auto own = static_cast<std::uint32_t>(rank);
    const unsigned peers = static_cast<unsigned>(ranks - 1);
    const unsigned before = in_place ? 0 : most_ahead < peers ? most_ahead : peers;  // sends that come first
    if (i == before) return copy({own}, in(own), out(own));
    if (i < before) return sent(ranks, rank, i);
    i -= before + 1;
    if (in_place) {
      const int peer = partner(ranks, rank, i / 3);
      const auto block = static_cast<std::uint32_t>(peer);
      if (i % 3 == 0) return sent(ranks, rank, i / 3);
      return i % 3 == 1 ? receive(peer, {block}, scratch(0)) : joined(copy({block}, scratch(0), out(block)));
    }
    const unsigned later = peers - before;  // sends that alternate with receives
    if (i < 2 * later && i % 2 == 1) return sent(ranks, rank, before + i / 2);
    const int peer = partner(ranks, rank, i < 2 * later ? i / 2 : i - later);
    const auto block = static_cast<std::uint32_t>(peer);
    return receive(peer, {block}, out(block));
  }

 private:
  static constexpr unsigned most_ahead = 8;

  /// The partner in the round of that number, without the round in which this rank is its own partner.
  static constexpr int partner(int ranks, int rank, unsigned number) noexcept {
    const int alone = 2 * rank % ranks;
    const int round = static_cast<int>(number) < alone ? static_cast<int>(number) : static_cast<int>(number) + 1;
    return round < rank ? round - rank + ranks : round - rank;
  }

  static constexpr action sent(int ranks, int rank, unsigned number) noexcept {
    const int peer = partner(ranks, rank, number);
    const auto block = static_cast<std::uint32_t>(peer);
    return send(peer, {block}, in(block));
  }
};

/// Each rank reads its block from all peers, beginning with its right neighbour. Two rounds of flags.
struct direct_all_to_all {
  /// Correct also if `in` and `out` are the same memory: blocks wait in scratch until all peers have read theirs.
  bool in_place = false;

  static constexpr const char* name() noexcept { return "direct"; }
  static constexpr plan::collective collective() noexcept { return {collective_kind::all_to_all, 0}; }

  constexpr plan::shape shape(int ranks) const noexcept {
    return {.chunks_per_block = 1,
            .scratch = in_place ? static_cast<std::uint32_t>(ranks - 1) : 0U,
            .peer_pointers = true,
            .symmetry = rank_symmetry::rotation};
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
