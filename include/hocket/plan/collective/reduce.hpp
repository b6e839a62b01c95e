// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Reduce: up a tree or along a chain with messages, or by reading the contributions if ranks can read each other's
/// memory. Ranks other than the root have no `out`: their partial results lie in scratch.
#pragma once

#include <hocket/plan/collective/fold.hpp>
#include <hocket/plan/plan.hpp>

#include <bit>

HOCKET_BEGIN_NAMESPACE
namespace plan {

namespace detail {

/// The fixed tree (see operation/fixed_tree.hpp), in which each partial result goes to the rank that is nearest to the
/// root by the low bits of member numbers. If the root belongs to a pair that is combined first, it stands in for it.
class reduction_tree {
 public:
  constexpr reduction_tree(int ranks, int rank, int root) noexcept
      : members_(ranks, rank), root_member_(fold(ranks, root).member()), rank_(rank), root_(root),
        root_is_paired_(fold(ranks, root).paired()) {}

  /// Returns whether this rank sends its contribution to its neighbour, and does nothing else.
  constexpr bool is_folded() const noexcept { return members_.paired() && representative(members_.member()) != rank_; }
  /// Returns whether this rank first receives the contribution of its neighbour.
  constexpr bool stands_for_pair() const noexcept { return members_.paired() && !is_folded(); }
  constexpr int neighbour() const noexcept { return rank_ ^ 1; }

  /// Number of rounds in which this rank receives. A rank that is not the root sends in the next one.
  constexpr int rounds() const noexcept {
    const int differing = members_.member() ^ root_member_;
    return differing == 0 ? members_.steps() : std::countr_zero(static_cast<unsigned>(differing));
  }
  constexpr int partner(int round) const noexcept { return representative(members_.member() ^ (1 << round)); }

 private:
  constexpr int representative(int member) const noexcept {
    return root_is_paired_ && member == root_member_ ? root_ : members_.rank_of(member);
  }

  fold members_;
  int root_member_;
  int rank_;
  int root_;
  bool root_is_paired_;
};

}  // namespace detail

/// In each round, half of the ranks that have a partial result send it to the other half: log2(p) rounds, one more if p
/// is not a power of two. Combines in the fixed tree.
struct binomial_reduce {
  int root = 0;  ///< the rank that gets the result

  static constexpr const char* name() noexcept { return "binomial"; }
  constexpr plan::collective collective() const noexcept { return {collective_kind::reduce, root}; }
  static constexpr plan::shape shape(int ranks) noexcept {
    return {.chunks_per_block = 1, .scratch = ranks <= 2 ? 0U : 1U, .order = combination_order::fixed_tree};
  }

  constexpr unsigned length(int ranks, int rank, unsigned /*lane*/) const noexcept {
    if (ranks == 1) return 1;
    const detail::reduction_tree who(ranks, rank, root);
    if (who.is_folded()) return 1;
    return received(who) + (rank == root ? 0U : 1U);
  }

  constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) const noexcept {
    if (ranks == 1) return copy({0}, in(0), out(0));
    const detail::reduction_tree who(ranks, rank, root);
    if (who.is_folded()) return send(who.neighbour(), {0}, in(0));
    const place to = rank == root ? out(0) : scratch(0);
    const place from = i == 0 ? in(0) : to;
    if (i == received(who)) return send(who.partner(who.rounds()), {0}, from);
    const bool is_neighbour = who.stands_for_pair() && i == 0;
    const int round = static_cast<int>(i) - (who.stands_for_pair() ? 1 : 0);
    const int peer = is_neighbour ? who.neighbour() : who.partner(round);
    return receive_reduce(peer, {0}, from, to, peer < rank ? operand_order::message_first : operand_order::local_first);
  }

 private:
  static constexpr unsigned received(const detail::reduction_tree& who) noexcept {
    return static_cast<unsigned>(who.rounds()) + (who.stands_for_pair() ? 1U : 0U);
  }
};

/// A chain around the ring that begins after the root and ends at it, through which the vector passes in chunks. Each rank
/// sends and receives the vector once. Each chunk has its own slot of scratch, so that no send must be awaited.
struct ring_reduce {
  int root = 0;  ///< the rank that gets the result

  static constexpr std::uint32_t chunks_per_block = 16;  ///< which is the whole vector

  static constexpr const char* name() noexcept { return "ring"; }
  constexpr plan::collective collective() const noexcept { return {collective_kind::reduce, root}; }
  constexpr plan::shape shape(int ranks) const noexcept {
    return {.chunks_per_block = chunks_per_block, .scratch = ranks <= 2 ? 0U : chunks_per_block, .order = order(ranks)};
  }

  constexpr unsigned length(int ranks, int rank, unsigned /*lane*/) const noexcept {
    if (ranks == 1) return 1;
    return rank == root || is_first(ranks, rank) ? chunks_per_block : 2 * chunks_per_block;
  }

  constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) const noexcept {
    if (ranks == 1) return copy({0, chunks_per_block}, in(0), out(0));
    const int left = rank == 0 ? ranks - 1 : rank - 1;
    const int right = rank + 1 == ranks ? 0 : rank + 1;
    if (is_first(ranks, rank)) return send(right, {i}, in(i));
    const operand_order order = left < rank ? operand_order::message_first : operand_order::local_first;
    if (rank == root) return receive_reduce(left, {i}, in(i), out(i), order);
    const std::uint32_t chunk = i / 2;
    if (i % 2 == 0) return receive_reduce(left, {chunk}, in(chunk), scratch(chunk), order);
    return send(right, {chunk}, scratch(chunk));
  }

 private:
  /// The chain is in rank order if the root is at one end of it. ((0 1) 2) is also the fixed tree of 3 ranks.
  constexpr combination_order order(int ranks) const noexcept {
    if (ranks <= 2 || (ranks == 3 && root == 2)) return combination_order::fixed_tree;
    return root == 0 || root == ranks - 1 ? combination_order::rank_order : combination_order::any_order;
  }
  constexpr bool is_first(int ranks, int rank) const noexcept { return rank == (root + 1 == ranks ? 0 : root + 1); }
};

/// The root reads all contributions, and combines them in the fixed tree.
struct direct_reduce {
  int root = 0;  ///< the rank that gets the result

  static constexpr const char* name() noexcept { return "direct"; }
  constexpr plan::collective collective() const noexcept { return {collective_kind::reduce, root}; }
  static constexpr plan::shape shape(int /*ranks*/) noexcept {
    return {.chunks_per_block = 1, .peer_pointers = true, .order = combination_order::fixed_tree};
  }

  constexpr unsigned length(int ranks, int rank, unsigned /*lane*/) const noexcept {
    return ranks == 1 ? 1 : rank == root ? 3 : 2;
  }

  constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) const noexcept {
    if (ranks == 1) return copy({0}, in(0), out(0));
    if (rank != root) return i == 0 ? signal(root, 0) : wait(root, 1);
    switch (i) {
      case 0: return wait(all_peers, 0);
      case 1: return load_reduce({0}, in(0), out(0));
      default: return signal(all_peers, 1);
    }
  }
};

}  // namespace plan
HOCKET_END_NAMESPACE
