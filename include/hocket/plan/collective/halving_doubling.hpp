// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// All-reduce for larger vectors with messages, in a logarithmic number of rounds: it moves as little data as the ring,
/// in far fewer steps.
#pragma once

#include <hocket/plan/collective/fold.hpp>
#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// In round k, members whose numbers differ in bit k split the rest of the vector: each sends the half that the other
/// continues with. Then the same rounds run backwards, and each sends its finished part. 2·log2(p) messages per rank,
/// two more (of the whole vector) if p is not a power of two. Neighbours combine first, so the order is rank order.
///
/// No join is needed: a part that was sent is overwritten only by the result that the same peer sends back.
struct halving_doubling {
  static constexpr const char* name() noexcept { return "halving_doubling"; }
  static constexpr plan::collective collective() noexcept { return {collective_kind::all_reduce, 0}; }

  static constexpr plan::shape shape(int ranks) noexcept {
    const detail::fold all(ranks, 0);
    return {.chunks_per_block = static_cast<std::uint32_t>(all.members()),
            .order = combination_order::fixed_tree,
            .symmetry = all.symmetry()};
  }

  static constexpr unsigned length(int ranks, int rank, unsigned /*lane*/) noexcept {
    if (ranks == 1) return 1;
    const detail::fold who(ranks, rank);
    if (who.is_folded()) return 2;
    return 4 * static_cast<unsigned>(who.steps()) + (who.stands_for_pair() ? 2U : 0U);
  }

  static constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) noexcept {
    if (ranks == 1) return copy({0}, in(0), out(0));
    const detail::fold who(ranks, rank);
    const chunks whole{0, static_cast<std::uint32_t>(who.members())};
    if (who.is_folded()) return i == 0 ? send(rank + 1, whole, in(0)) : receive(rank + 1, whole, out(0));
    if (who.stands_for_pair()) {
      if (i == 0) return receive_reduce(rank - 1, whole, in(0), out(0), operand_order::message_first);
      --i;
    }
    const int steps = who.steps();
    const int step = static_cast<int>(i / 2);
    if (step == 2 * steps) return send(rank - 1, whole, out(0));
    const bool halving = step < steps;
    const int round = halving ? step : 2 * steps - 1 - step;
    const int peer = who.rank_of(who.member() ^ (1 << round));
    const chunks mine = share(who.members(), who.member(), round + 1);
    const chunks theirs = share(who.members(), who.member() ^ (1 << round), round + 1);
    const bool sends = i % 2 == 0;
    if (!halving) return sends ? send(peer, mine, out(mine.first)) : receive(peer, theirs, out(theirs.first));
    const region held = round == 0 && !who.stands_for_pair() ? region::in : region::out;
    if (sends) return send(peer, theirs, {held, theirs.first});
    return receive_reduce(peer, mine, {held, mine.first}, out(mine.first),
                          peer < rank ? operand_order::message_first : operand_order::local_first);
  }

 private:
  /// Returns the part of `member` after `rounds` rounds of halving: each bit of its number chooses a half.
  static constexpr chunks share(int members, int member, int rounds) noexcept {
    chunks left{0, static_cast<std::uint32_t>(members)};
    for (int round = 0; round < rounds; ++round) {
      left.count /= 2;
      if ((member >> round) % 2 == 1) left.first += left.count;
    }
    return left;
  }
};

}  // namespace plan
HOCKET_END_NAMESPACE
