// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A tree for plans that move a block from or to each rank: the ranks of each subtree are neighbours, so that their
/// blocks are one part of the vector.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/ceiling_log2.hpp>

#include <algorithm>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace plan::detail {

/// A binomial tree with any root. A group of level k is the ranks that differ only in their lowest k bits. Two groups
/// of a level make one of the next; the leader of one of them leads both, and is then the parent of the other leader.
///
///     ranks 0 to 5, root 2      2 ─┬─ 3       2 leads [2, 3], [0, 3] and [0, 5]
///                                  ├─ 0 ── 1  0 leads [0, 1]
///                                  └─ 4 ── 5  4 leads [4, 5]
class block_tree {
 public:
  constexpr block_tree(int ranks, int root) noexcept : ranks_(ranks), root_(root) {}

  /// The ranks of a group: [begin, end).
  struct rank_range {
    int begin = 0;
    int end = 0;
    constexpr std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(end - begin); }
  };

  /// The group that a child leads.
  struct subtree {
    int leader = 0;
    rank_range ranks;
  };

  /// Number of levels above the single ranks.
  constexpr int levels() const noexcept { return ceiling_log2(ranks_); }

  /// The most ranks of a subtree that does not contain the root; 0 if each of them is a single rank.
  static constexpr std::uint32_t largest_inner(int ranks) noexcept {
    return ranks <= 2 ? 0U : 1U << (ceiling_log2(ranks) - 1);
  }

  /// Level of the largest group that `rank` leads.
  constexpr int level_of(int rank) const noexcept {
    int level = 0;
    while (level < levels() && leader_of(level + 1, rank >> (level + 1)) == rank) ++level;
    return level;
  }

  constexpr rank_range group_of(int rank, int level) const noexcept {
    const int begin = rank >> level << level;
    return {begin, static_cast<int>(std::min<std::int64_t>(std::int64_t{begin} + (std::int64_t{1} << level), ranks_))};
  }

  /// `rank` must not be the root.
  constexpr int parent(int rank) const noexcept {
    const int level = level_of(rank) + 1;
    return leader_of(level, rank >> level);
  }

  constexpr unsigned children(int rank) const noexcept {
    unsigned count = 0;
    for (int level = level_of(rank) - 1; level >= 0; --level) count += has_sibling(rank, level) ? 1U : 0U;
    return count;
  }

  /// Children are numbered by size of their subtree, the smallest first.
  constexpr subtree child(int rank, unsigned i) const noexcept {
    int level = 0;
    while (!has_sibling(rank, level) || i-- > 0) ++level;
    const int sibling = (rank >> level) ^ 1;
    return {leader_of(level, sibling), group_of(sibling << level, level)};
  }

 private:
  constexpr bool has_sibling(int rank, int level) const noexcept { return ((rank >> level) ^ 1) << level < ranks_; }

  /// The rank of a group whose low bits are those of the root; if there is none, the leader of the group's lower half.
  constexpr int leader_of(int level, int group) const noexcept {
    for (;; --level, group *= 2) {
      const int leader = group << level | (root_ & ((1 << level) - 1));
      if (leader < ranks_) return leader;
    }
  }

  int ranks_;
  int root_;
};

}  // namespace plan::detail
HOCKET_END_NAMESPACE
