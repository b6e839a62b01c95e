// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Gather: with messages to the root, directly or up a tree, or by reading the blocks if ranks can read each other's
/// memory. Ranks other than the root have no `out`.
#pragma once

#include <hocket/plan/collective/block_tree.hpp>
#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// Each rank sends its block to the root.
struct flat_gather {
  int root = 0;  ///< the rank that gets all blocks

  static constexpr const char* name() noexcept { return "flat"; }
  constexpr plan::collective collective() const noexcept { return {collective_kind::gather, root}; }
  static constexpr plan::shape shape(int /*ranks*/) noexcept { return {.chunks_per_block = 1}; }

  constexpr unsigned length(int ranks, int rank, unsigned /*lane*/) const noexcept {
    return rank == root ? static_cast<unsigned>(ranks) : 1;
  }

  constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) const noexcept {
    const auto own = static_cast<std::uint32_t>(rank);
    if (rank != root) return send(root, {own}, in(own));
    if (i == 0) return copy({own}, in(own), out(own));
    const int next = rank + static_cast<int>(i);
    const int peer = next < ranks ? next : next - ranks;
    const auto theirs = static_cast<std::uint32_t>(peer);
    return receive(peer, {theirs}, out(theirs));
  }
};

/// Up a tree: each rank collects the blocks of its subtree in scratch, and sends them in one message. log2(p) rounds, for
/// short blocks; each block passes through up to log2(p) ranks.
struct binomial_gather {
  int root = 0;  ///< the rank that gets all blocks

  static constexpr const char* name() noexcept { return "binomial"; }
  constexpr plan::collective collective() const noexcept { return {collective_kind::gather, root}; }
  static constexpr plan::shape shape(int ranks) noexcept {
    return {.chunks_per_block = 1, .scratch = detail::block_tree::largest_inner(ranks), .equal_blocks = true};
  }

  constexpr unsigned length(int ranks, int rank, unsigned /*lane*/) const noexcept {
    const unsigned children = detail::block_tree(ranks, root).children(rank);
    return (rank == root || children > 0 ? 1U : 0U) + children + (rank == root ? 0U : 1U);
  }

  constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) const noexcept {
    const detail::block_tree tree(ranks, root);
    const auto own = static_cast<std::uint32_t>(rank);
    const unsigned children = tree.children(rank);
    const auto all = tree.group_of(rank, tree.level_of(rank));
    const auto first = static_cast<std::uint32_t>(all.begin);
    const auto held = [&](std::uint32_t block) { return rank == root ? out(block) : scratch(block - first); };
    if (rank != root && children == 0) return send(tree.parent(rank), {own}, in(own));
    if (i == 0) return copy({own}, in(own), held(own));
    if (i > children) return send(tree.parent(rank), {first, all.size()}, scratch(0));
    const auto from = tree.child(rank, i - 1);
    const auto theirs = static_cast<std::uint32_t>(from.ranks.begin);
    return receive(from.leader, {theirs, from.ranks.size()}, held(theirs));
  }
};

/// The root reads the block of each rank as soon as that rank has begun the call.
struct direct_gather {
  int root = 0;  ///< the rank that gets all blocks

  static constexpr const char* name() noexcept { return "direct"; }
  constexpr plan::collective collective() const noexcept { return {collective_kind::gather, root}; }
  static constexpr plan::shape shape(int /*ranks*/) noexcept { return {.chunks_per_block = 1, .peer_pointers = true}; }

  constexpr unsigned length(int ranks, int rank, unsigned /*lane*/) const noexcept {
    return rank == root ? 1 + 3 * static_cast<unsigned>(ranks - 1) : 2;
  }

  constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) const noexcept {
    const auto own = static_cast<std::uint32_t>(rank);
    if (rank != root) return i == 0 ? signal(root, 0) : wait(root, 1);
    if (i == 0) return copy({own}, in(own), out(own));
    const int next = rank + 1 + static_cast<int>((i - 1) / 3);
    const int peer = next < ranks ? next : next - ranks;
    const auto theirs = static_cast<std::uint32_t>(peer);
    switch ((i - 1) % 3) {
      case 0: return wait(peer, 0);
      case 1: return load(peer, {theirs}, in(theirs), out(theirs));
      default: return signal(peer, 1);
    }
  }
};

}  // namespace plan
HOCKET_END_NAMESPACE
