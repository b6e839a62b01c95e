// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// All-reduce for small vectors with messages: as few rounds as possible, each with the whole vector.
#pragma once

#include <hocket/plan/collective/fold.hpp>
#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// In round k, members whose numbers differ in bit k exchange their partial results. log2(p) rounds, two more if p is
/// not a power of two. Combines in rank order.
///
/// Partial results alternate between two scratch slots; the last round writes `out`. A slot may be overwritten when the
/// message that was sent from it has drained, so a round that reuses a slot joins first. Up to 8 ranks, none does.
struct recursive_doubling {
  bool in_place = false;  ///< correct also if `in` and `out` are the same memory; costs a copy on two and three ranks

  static constexpr const char* name() noexcept { return "recursive_doubling"; }
  static constexpr plan::collective collective() noexcept { return {collective_kind::all_reduce, 0}; }

  constexpr plan::shape shape(int ranks) const noexcept {
    return {.chunks_per_block = 1,
            .scratch = ranks == 1   ? 0U
                       : ranks == 2 ? (in_place ? 1U : 0U)
                                    : 2U,
            .order = combination_order::fixed_tree,
            .symmetry = detail::fold(ranks, 0).symmetry()};
  }

  constexpr unsigned length(int ranks, int rank, unsigned /*lane*/) const noexcept {
    if (ranks == 1) return 1;
    const detail::fold who(ranks, rank);
    if (who.is_folded()) return 2;
    const unsigned rounds = 2 * static_cast<unsigned>(who.steps());
    return rounds + (who.stands_for_pair() ? 2U : leaves_by_copy(who) ? 1U : 0U);
  }

  constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) const noexcept {
    if (ranks == 1) return copy({0}, in(0), out(0));
    const detail::fold who(ranks, rank);
    if (who.is_folded()) return i == 0 ? send(rank + 1, {0}, in(0)) : receive(rank + 1, {0}, out(0));
    if (who.stands_for_pair()) {
      if (i == 0) return receive_reduce(rank - 1, {0}, in(0), scratch(0), operand_order::message_first);
      --i;
    }
    const int round = static_cast<int>(i / 2);
    if (round == who.steps()) {
      return who.stands_for_pair() ? send(rank - 1, {0}, out(0)) : joined(copy({0}, scratch(0), out(0)));
    }
    const int peer = who.rank_of(who.member() ^ (1 << round));
    if (i % 2 == 0) {
      const action first = send(peer, {0}, partial(who, round));
      return joins_before(who, round) ? joined(first) : first;
    }
    return receive_reduce(peer, {0}, partial(who, round), partial(who, round + 1),
                          peer < rank ? operand_order::message_first : operand_order::local_first);
  }

 private:
  /// Returns the place of the partial result after `round` rounds.
  constexpr place partial(const detail::fold& who, int round) const noexcept {
    if (round == 0 && !who.stands_for_pair()) return in(0);
    if (round == who.steps()) return leaves_by_copy(who) ? scratch(0) : out(0);
    return scratch(static_cast<std::uint32_t>(round % 2));
  }

  /// Returns whether this round overwrites what an earlier one sent: a slot, or `in` if it is the same memory as `out`.
  constexpr bool joins_before(const detail::fold& who, int round) const noexcept {
    if (round + 1 == who.steps()) return in_place && round > 0;
    return round >= 2 || (round == 1 && who.stands_for_pair());
  }

  /// With one round, the result would overwrite what is still being sent if `in` and `out` were the same memory.
  constexpr bool leaves_by_copy(const detail::fold& who) const noexcept {
    return in_place && who.steps() == 1 && !who.stands_for_pair();
  }
};

}  // namespace plan
HOCKET_END_NAMESPACE
