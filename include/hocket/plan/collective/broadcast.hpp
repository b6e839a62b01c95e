// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Broadcast: with messages down a tree, or directly if ranks can read the root's memory.
#pragma once

#include <hocket/plan/plan.hpp>

#include <algorithm>
#include <bit>

HOCKET_BEGIN_NAMESPACE
namespace plan {

namespace detail {

/// The tree in which the number of ranks that have the vector doubles in each round.
struct binomial_tree {
  int root = 0;

  constexpr int distance_from_root(int ranks, int rank) const noexcept {
    return rank >= root ? rank - root : rank - root + ranks;
  }
  constexpr int rank_at(int ranks, int distance) const noexcept {
    return distance < ranks - root ? root + distance : root + distance - ranks;
  }
  /// `rank` must not be the root.
  constexpr int parent(int ranks, int rank) const noexcept {
    const int distance = distance_from_root(ranks, rank);
    return rank_at(ranks, distance & (distance - 1));
  }
  /// A child's distance from the root has one more bit set, below the lowest bit of its parent's.
  constexpr unsigned children(int ranks, int rank) const noexcept {
    const auto distance = static_cast<unsigned>(distance_from_root(ranks, rank));
    const auto beyond = static_cast<unsigned>(ranks) - distance - 1;
    return static_cast<unsigned>(std::min<int>(std::countr_zero(distance), static_cast<int>(std::bit_width(beyond))));
  }
  /// Children are numbered by size of their subtree, the largest first.
  constexpr int child(int ranks, int rank, unsigned i) const noexcept {
    return rank_at(ranks, distance_from_root(ranks, rank) + (1 << (children(ranks, rank) - 1 - i)));
  }
};

}  // namespace detail

/// In each round, every rank that has the vector sends it to one that has not: log2(p) rounds.
struct binomial_broadcast {
  int root = 0;  ///< the rank whose vector is sent

  static constexpr const char* name() noexcept { return "binomial"; }
  constexpr plan::collective collective() const noexcept { return {collective_kind::broadcast, root}; }
  static constexpr plan::shape shape(int /*ranks*/) noexcept { return {.chunks_per_block = 1}; }

  constexpr unsigned length(int ranks, int rank, unsigned /*lane*/) const noexcept {
    return (rank == root ? 0U : 1U) + tree().children(ranks, rank);
  }

  constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) const noexcept {
    if (rank == root) return send(tree().child(ranks, rank, i), {0}, out(0));
    if (i == 0) return receive(tree().parent(ranks, rank), {0}, out(0));
    return send(tree().child(ranks, rank, i - 1), {0}, out(0));
  }

 private:
  constexpr detail::binomial_tree tree() const noexcept { return {root}; }
};

/// The same tree if ranks can read each other's memory: each rank reads its parent's vector, and then signals its
/// children that they may read its own. At most log2(p) ranks read from one rank.
struct binomial_load_broadcast {
  int root = 0;  ///< the rank whose vector is sent

  static constexpr const char* name() noexcept { return "binomial_load"; }
  constexpr plan::collective collective() const noexcept { return {collective_kind::broadcast, root}; }
  static constexpr plan::shape shape(int /*ranks*/) noexcept { return {.chunks_per_block = 1, .peer_pointers = true}; }

  constexpr unsigned length(int ranks, int rank, unsigned /*lane*/) const noexcept {
    return (rank == root ? 0U : 3U) + 2 * tree().children(ranks, rank);
  }

  constexpr action at(int ranks, int rank, unsigned /*lane*/, unsigned i) const noexcept {
    if (rank != root) {
      const int parent = tree().parent(ranks, rank);
      if (i == 0) return wait(parent, 0);
      if (i == 1) return load(parent, {0}, out(0), out(0));
      if (i == 2) return signal(parent, 1);
      i -= 3;
    }
    const unsigned children = tree().children(ranks, rank);
    return i < children ? signal(tree().child(ranks, rank, i), 0) : wait(tree().child(ranks, rank, i - children), 1);
  }

 private:
  constexpr detail::binomial_tree tree() const noexcept { return {root}; }
};

/// Every rank reads the root's vector.
struct direct_broadcast {
  int root = 0;  ///< the rank whose vector is sent

  static constexpr const char* name() noexcept { return "direct"; }
  constexpr plan::collective collective() const noexcept { return {collective_kind::broadcast, root}; }
  static constexpr plan::shape shape(int /*ranks*/) noexcept { return {.chunks_per_block = 1, .peer_pointers = true}; }

  constexpr unsigned length(int ranks, int rank, unsigned /*lane*/) const noexcept {
    return ranks == 1 ? 0 : rank == root ? 2 : 3;
  }

  constexpr action at(int /*ranks*/, int rank, unsigned /*lane*/, unsigned i) const noexcept {
    if (rank == root) return i == 0 ? signal(all_peers, 0) : wait(all_peers, 1);
    switch (i) {
      case 0: return wait(root, 0);
      case 1: return load(root, {0}, out(0), out(0));
      default: return signal(root, 1);
    }
  }
};

}  // namespace plan
HOCKET_END_NAMESPACE
