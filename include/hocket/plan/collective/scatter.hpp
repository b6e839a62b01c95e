// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Scatter: with messages from the root, directly or down a tree, or by reading the root's memory if ranks can. Ranks
/// other than the root have no `in`.
#pragma once

#include <hocket/plan/collective/block_tree.hpp>
#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// The root sends each rank its block.
struct flat_scatter {
  int root = 0;  ///< the rank that has all blocks

  static constexpr const char* name() noexcept { return "flat"; }
  constexpr plan::collective collective() const noexcept { return {collective_kind::scatter, root}; }
  static constexpr plan::shape shape(int /*ranks*/) noexcept { return {.chunks_per_block = 1}; }

  constexpr unsigned length(int ranks, int rank, unsigned /*lane*/) const noexcept {
    return rank == root ? static_cast<unsigned>(ranks) : 1;
  }

  constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) const noexcept {
    const auto own = static_cast<std::uint32_t>(rank);
    if (rank != root) return receive(root, {own}, out(own));
    if (i + 1 == static_cast<unsigned>(ranks)) return copy({own}, in(own), out(own));
    const int next = rank + 1 + static_cast<int>(i);
    const int peer = next < ranks ? next : next - ranks;
    const auto theirs = static_cast<std::uint32_t>(peer);
    return send(peer, {theirs}, in(theirs));
  }
};

/// Down a tree: each rank receives the blocks of its subtree in one message, and forwards those of its children, the
/// largest subtree first. log2(p) rounds, for short blocks; each block passes through up to log2(p) ranks.
struct binomial_scatter {
  int root = 0;  ///< the rank that has all blocks

  static constexpr const char* name() noexcept { return "binomial"; }
  constexpr plan::collective collective() const noexcept { return {collective_kind::scatter, root}; }
  static constexpr plan::shape shape(int ranks) noexcept {
    return {.chunks_per_block = 1, .scratch = detail::block_tree::largest_inner(ranks), .equal_blocks = true};
  }

  constexpr unsigned length(int ranks, int rank, unsigned /*lane*/) const noexcept {
    const unsigned children = detail::block_tree(ranks, root).children(rank);
    return (rank == root ? 0U : 1U) + children + (rank == root || children > 0 ? 1U : 0U);
  }

  constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) const noexcept {
    const detail::block_tree tree(ranks, root);
    const auto own = static_cast<std::uint32_t>(rank);
    const unsigned children = tree.children(rank);
    const auto all = tree.group_of(rank, tree.level_of(rank));
    const auto first = static_cast<std::uint32_t>(all.begin);
    const auto held = [&](std::uint32_t block) { return rank == root ? in(block) : scratch(block - first); };
    if (rank != root) {
      if (children == 0) return receive(tree.parent(rank), {own}, out(own));
      if (i == 0) return receive(tree.parent(rank), {first, all.size()}, scratch(0));
      --i;
    }
    if (i == children) return copy({own}, held(own), out(own));
    const auto to = tree.child(rank, children - 1 - i);
    const auto theirs = static_cast<std::uint32_t>(to.ranks.begin);
    return send(to.leader, {theirs, to.ranks.size()}, held(theirs));
  }
};

/// Each rank reads its block of the root's vector.
struct direct_scatter {
  int root = 0;  ///< the rank that has all blocks

  static constexpr const char* name() noexcept { return "direct"; }
  constexpr plan::collective collective() const noexcept { return {collective_kind::scatter, root}; }
  static constexpr plan::shape shape(int /*ranks*/) noexcept { return {.chunks_per_block = 1, .peer_pointers = true}; }

  constexpr unsigned length(int ranks, int /*rank*/, unsigned /*lane*/) const noexcept { return ranks == 1 ? 1 : 3; }

  constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) const noexcept {
    const auto own = static_cast<std::uint32_t>(rank);
    if (ranks == 1) return copy({0}, in(0), out(0));
    if (rank == root) {
      switch (i) {
        case 0: return signal(all_peers, 0);
        case 1: return copy({own}, in(own), out(own));
        default: return wait(all_peers, 1);
      }
    }
    switch (i) {
      case 0: return wait(root, 0);
      case 1: return load(root, {own}, in(own), out(own));
      default: return signal(root, 1);
    }
  }
};

}  // namespace plan
HOCKET_END_NAMESPACE
