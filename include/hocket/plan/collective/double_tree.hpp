// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// All-reduce for medium-sized vectors and many ranks: logarithmic latency, and each link is busy in both directions.
#pragma once

#include <hocket/plan/plan.hpp>

#include <bit>
#include <cstdint>
#include <limits>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// Two binary trees over the ranks (Sanders, Speck and Träff, 2009): an inner node of one tree is a leaf of the other.
/// Each half of the vector is combined up one tree and sent down the same tree, in `chunks_per_half` pieces that follow
/// each other. A subtree holds consecutive ranks, so the order of combination is rank order.
///
/// Lanes and channels: 2·tree + (0 up, 1 down). A root sends down from its up lane. No scratch, no joins: a rank
/// receives a result only after its parent has received what the rank sent up.
struct double_tree {
  std::uint32_t chunks_per_half = 16;  ///< chunks of each half

  static constexpr const char* name() noexcept { return "double_tree"; }
  static constexpr plan::collective collective() noexcept { return {collective_kind::all_reduce, 0}; }

  constexpr plan::shape shape(int ranks) const noexcept {
    if (ranks == 1) return {.order = combination_order::fixed_tree};
    constexpr std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
    return {.chunks_per_block = chunks_per_half > most / 2 ? most : 2 * chunks_per_half,
            .lanes = 4,
            .order = ranks <= 3 ? combination_order::fixed_tree : combination_order::rank_order};
  }

  constexpr unsigned length(int ranks, int rank, unsigned lane) const noexcept {
    if (ranks == 1) return 1;
    const node me = node_of(ranks, rank, lane / 2);
    return chunks_per_half * (lane % 2 == 0 ? me.steps_up() : me.steps_down());
  }

  constexpr action at(int ranks, int rank, unsigned lane, unsigned i) const noexcept {
    if (ranks == 1) return copy({0}, in(0), out(0));
    const node me = node_of(ranks, rank, lane / 2);
    const unsigned steps = lane % 2 == 0 ? me.steps_up() : me.steps_down();
    const std::uint32_t chunk = i / steps + (lane / 2) * chunks_per_half;
    const unsigned step = i % steps;
    return lane % 2 == 0 ? up(me, rank, chunk, step, lane) : down(me, chunk, step, lane);
  }

 private:
  struct node {
    int parent = -1;
    int first = -1;   ///< a child, or -1
    int second = -1;  ///< another child, or -1

    constexpr unsigned children() const noexcept { return (first >= 0 ? 1U : 0U) + (second >= 0 ? 1U : 0U); }
    constexpr bool root() const noexcept { return parent < 0; }
    constexpr int child(unsigned i) const noexcept { return i == 0 && first >= 0 ? first : second; }
    constexpr unsigned steps_up() const noexcept { return children() + (root() ? children() : 1U); }
    constexpr unsigned steps_down() const noexcept { return root() ? 0U : 1U + children(); }
  };

  /// Combines what the children send, then sends it to the parent or, at the root, as the result to the children.
  static constexpr action up(const node& me, int rank, std::uint32_t chunk, unsigned step, unsigned lane) noexcept {
    const place held = step == 0 ? in(chunk) : out(chunk);
    if (step < me.children()) {
      const int child = me.child(step);
      return receive_reduce(child, {chunk}, held, out(chunk),
                            child < rank ? operand_order::message_first : operand_order::local_first, lane);
    }
    if (!me.root()) return send(me.parent, {chunk}, held, lane);
    return send(me.child(step - me.children()), {chunk}, held, lane + 1);
  }

  static constexpr action down(const node& me, std::uint32_t chunk, unsigned step, unsigned lane) noexcept {
    if (step == 0) return receive(me.parent, {chunk}, out(chunk), lane);
    return send(me.child(step - 1), {chunk}, out(chunk), lane);
  }

  /// The trees span an even number of ranks. The second is the mirror image of the first, so that a leaf (an odd
  /// position) of one is an inner node (an even position) of the other. If the number of ranks is odd, the last rank
  /// is above both roots.
  static constexpr node node_of(int ranks, int rank, unsigned tree) noexcept {
    const int spanned = ranks - ranks % 2;
    const auto rank_at = [&](int position) {
      return position == 0 ? -1 : tree == 0 ? position - 1 : spanned - position;
    };
    const int top = static_cast<int>(std::bit_floor(static_cast<unsigned>(spanned)));
    if (rank == spanned) return {-1, rank_at(top), -1};
    const int position = tree == 0 ? rank + 1 : spanned - rank;
    const int parent = parent_of(position, spanned);
    return {parent > 0 ? rank_at(parent) : (spanned < ranks ? spanned : -1), rank_at(low_child_of(position)),
            rank_at(high_child_of(position, spanned))};
  }

  /// Positions count from 1. In an endless binary tree in symmetric order, the number of trailing zeros is the height
  /// of a position above the leaves. Positions beyond `last` are omitted, and their lower children move up. 0: none.
  static constexpr int height_of(int position) noexcept { return std::countr_zero(static_cast<unsigned>(position)); }

  static constexpr int parent_of(int position, int last) noexcept {
    if (2 * static_cast<long long>(position) > last && std::has_single_bit(static_cast<unsigned>(position))) return 0;
    do {
      const int half = 1 << height_of(position);
      position = (position & (half << 1)) != 0 ? position - half : position + half;
    } while (position > last);
    return position;
  }

  static constexpr int low_child_of(int position) noexcept {
    const int height = height_of(position);
    return height == 0 ? 0 : position - (1 << (height - 1));
  }

  static constexpr int high_child_of(int position, int last) noexcept {
    for (int half = (1 << height_of(position)) / 2; half > 0; half /= 2) {
      if (position + half <= last) return position + half;
    }
    return 0;
  }
};

}  // namespace plan
HOCKET_END_NAMESPACE
