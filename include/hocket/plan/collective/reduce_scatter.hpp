// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Reduce-scatter: with messages around a ring, between all pairs or by halves, or by reading each other's memory.
#pragma once

#include <hocket/plan/collective/fold.hpp>
#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// A block travels once around the ring, from the rank after its owner; each rank combines its contribution with it.
/// p-1 messages per rank. Partial results alternate between two scratch slots; a slot may be overwritten when the
/// message that was sent from it has drained.
struct ring_reduce_scatter {
  static constexpr const char* name() noexcept { return "ring"; }
  static constexpr plan::collective collective() noexcept { return {collective_kind::reduce_scatter, 0}; }

  static constexpr plan::shape shape(int ranks) noexcept {
    return {.chunks_per_block = 1,
            .scratch = ranks <= 2   ? 0U
                       : ranks == 3 ? 1U
                                    : 2U,
            .order = ranks <= 2 ? combination_order::fixed_tree : combination_order::any_order,
            .symmetry = rank_symmetry::rotation};
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
      const action forwarded = send(right, {block}, step == 0 ? in(block) : scratch(1 - slot));
      return step >= 2 && !last ? joined(forwarded) : forwarded;
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

/// Each rank sends to every other rank that rank's block, and combines the messages for its own block: first those of
/// lower ranks, downwards, in front of its own operand, then those of higher ranks, upwards, behind it. So operands
/// stay in rank order. p-1 messages per rank, all in flight from the beginning.
struct pairwise_reduce_scatter {
  static constexpr const char* name() noexcept { return "pairwise"; }
  static constexpr plan::collective collective() noexcept { return {collective_kind::reduce_scatter, 0}; }

  static constexpr plan::shape shape(int ranks) noexcept {
    return {.chunks_per_block = 1,
            .order = ranks <= 2 ? combination_order::fixed_tree : combination_order::rank_order,
            .symmetry = ranks == 1 ? rank_symmetry::rotation : rank_symmetry::rotated_sends};
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

/// In round k, members whose numbers differ in bit k split the remaining blocks: each sends those whose owners have the
/// other's bit. Neighbours combine first, in the fixed tree. As many messages as pairwise, one block each; if p is not
/// a power of two, p more to the rank that stands in, and one back.
///
/// No join is needed: the places that were sent from are not used again.
struct recursive_halving_reduce_scatter {
  static constexpr const char* name() noexcept { return "recursive_halving"; }
  static constexpr plan::collective collective() noexcept { return {collective_kind::reduce_scatter, 0}; }

  static constexpr plan::shape shape(int ranks) noexcept {
    return {.chunks_per_block = 1,
            .scratch = ranks <= 2 ? 0U : static_cast<std::uint32_t>(ranks),
            .order = combination_order::fixed_tree,
            .symmetry = detail::fold(ranks, 0).symmetry()};
  }

  static constexpr unsigned length(int ranks, int rank, unsigned /*lane*/) noexcept {
    if (ranks == 1) return 1;
    const detail::fold who(ranks, rank);
    const auto blocks = static_cast<unsigned>(ranks);
    if (who.is_folded()) return blocks + 1;
    unsigned steps = who.stands_for_pair() ? blocks + 1 : 0;
    for (int round = 0; round < who.steps(); ++round) {
      steps += static_cast<unsigned>(shared(ranks, who, round, true).size() + shared(ranks, who, round, false).size());
    }
    return steps;
  }

  static constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) noexcept {
    if (ranks == 1) return copy({0}, in(0), out(0));
    const detail::fold who(ranks, rank);
    const auto blocks = static_cast<unsigned>(ranks);
    const auto own = static_cast<std::uint32_t>(rank);
    if (who.is_folded()) return i < blocks ? send(rank + 1, {i}, in(i)) : receive(rank + 1, {own}, out(own));
    if (who.stands_for_pair()) {
      if (i < blocks) return receive_reduce(rank - 1, {i}, in(i), scratch(i), operand_order::message_first);
      i -= blocks;
    }
    for (int round = 0; round < who.steps(); ++round) {
      const owned_blocks theirs = shared(ranks, who, round, true);
      const owned_blocks mine = shared(ranks, who, round, false);
      if (i >= theirs.size() + mine.size()) {
        i -= theirs.size() + mine.size();
        continue;
      }
      const int peer = who.rank_of(who.member() ^ (1 << round));
      const region held = round == 0 && !who.stands_for_pair() ? region::in : region::scratch;
      if (const round_message now = round_message_of(i, theirs.size()); now.sends) {
        const std::uint32_t block = theirs.at(now.number);
        return send(peer, {block}, {held, block});
      } else {
        const std::uint32_t block = mine.at(now.number);
        const bool last = round + 1 == who.steps() && block == own;
        return receive_reduce(peer, {block}, {held, block}, last ? out(block) : scratch(block),
                              peer < rank ? operand_order::message_first : operand_order::local_first);
      }
    }
    return send(rank - 1, {own - 1}, scratch(own - 1));
  }

 private:
  /// The blocks of the members whose numbers are `first` modulo `stride`, in rank order.
  struct owned_blocks {
    unsigned members;
    unsigned extra;  ///< members with two blocks, because they stand in for their neighbours
    unsigned first;
    unsigned stride;

    constexpr unsigned pairs() const noexcept { return extra > first ? (extra - first + stride - 1) / stride : 0; }
    constexpr unsigned size() const noexcept { return members / stride + pairs(); }
    constexpr std::uint32_t at(unsigned i) const noexcept {
      const unsigned paired = 2 * pairs();
      return i < paired ? 2 * (first + i / 2 * stride) + i % 2 : first + (i - paired / 2) * stride + extra;
    }
  };

  /// One message of a round. The sends run ahead of the receives by the depth of a channel.
  struct round_message {
    bool sends;
    unsigned number;
  };
  static constexpr round_message round_message_of(unsigned i, unsigned sends) noexcept {
    const unsigned ahead = sends < channel_depth ? sends : channel_depth;
    if (i < ahead) return {true, i};
    const unsigned alternating = 2 * (sends - ahead);
    i -= ahead;
    if (i >= alternating) return {false, i - alternating / 2};
    return i % 2 == 0 ? round_message{false, i / 2} : round_message{true, ahead + i / 2};
  }

  /// Returns the blocks that a member sends in a round, or those that it keeps.
  static constexpr owned_blocks shared(int ranks, const detail::fold& who, int round, bool sends) noexcept {
    const auto members = static_cast<unsigned>(who.members());
    const unsigned stride = 2U << round;
    const auto member = static_cast<unsigned>(sends ? who.member() ^ (1 << round) : who.member());
    return {members, static_cast<unsigned>(ranks) - members, member % stride, stride};
  }
};

/// Each rank reads its block of all contributions, and combines them in rank order. Two rounds of flags.
struct direct_reduce_scatter {
  static constexpr const char* name() noexcept { return "direct"; }
  static constexpr plan::collective collective() noexcept { return {collective_kind::reduce_scatter, 0}; }

  static constexpr plan::shape shape(int /*ranks*/) noexcept {
    return {.chunks_per_block = 1,
            .peer_pointers = true,
            .order = combination_order::fixed_tree,
            .symmetry = rank_symmetry::rotation};
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
