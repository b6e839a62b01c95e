// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The values that memory holds while a plan is being proven: expressions over contributions instead of numbers.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/operation/fixed_tree.hpp>
#include <hocket/plan/detail/index_map.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::detail {

/// Expressions are numbered so that equal ones have equal numbers: two ranks whose results have the same number
/// evaluate the same expression, and get the same bits.
class values {
 public:
  constexpr values(int ranks, std::uint32_t chunks)
      : ranks_(static_cast<std::uint32_t>(ranks)), chunks_(chunks), words_((ranks_ + 63) / 64) {}

  /// Chunk `chunk` of the contribution of `rank`.
  constexpr std::uint32_t contribution(int rank, std::uint32_t chunk) const noexcept {
    return static_cast<std::uint32_t>(rank) * chunks_ + chunk;
  }

  constexpr std::uint32_t chunk_of(std::uint32_t value) const noexcept {
    return is_contribution(value) ? value % chunks_ : nodes_[value - contributions()].chunk;
  }

  /// Returns a ∘ b. Both must belong to the same chunk and share no contribution.
  constexpr std::uint32_t combine(std::uint32_t a, std::uint32_t b) { return combine(pairs_, a, b); }

  /// Returns a ∘ b within one `load_reduce`, where `a` is the combination so far. The operation chooses the order: from
  /// the left or in the fixed tree, which are the same for up to three ranks.
  constexpr std::uint32_t combine_in_one_step(std::uint32_t a, std::uint32_t b) {
    return combine(ranks_ <= 3 ? pairs_ : steps_, a, b);
  }

  /// Returns a rank whose contribution both contain, or -1.
  constexpr int shared(std::uint32_t a, std::uint32_t b) const noexcept {
    for (std::uint32_t w = 0; w < words_; ++w) {
      const std::uint64_t both = mask_word(a, w) & mask_word(b, w);
      if (both != 0) return static_cast<int>(64 * w) + std::countr_zero(both);
    }
    return -1;
  }

  /// Returns a rank whose contribution is missing, or -1.
  constexpr int missing(std::uint32_t value) const noexcept {
    for (std::uint32_t w = 0; w < words_; ++w) {
      const int rank = static_cast<int>(64 * w) + std::countr_one(mask_word(value, w));
      if (rank < static_cast<int>(64 * (w + 1))) return rank < static_cast<int>(ranks_) ? rank : -1;
    }
    return -1;
  }

  /// Returns whether all contributions are combined in the fixed tree, provided that each `load_reduce` combines in it.
  constexpr bool in_fixed_tree(std::uint32_t value) {
    const std::uint32_t chunk = chunk_of(value);
    return value == by_one_step(chunk) || value == by_pairs(chunk);
  }

  /// Returns whether all contributions are combined, and in rank order.
  constexpr bool in_rank_order(std::uint32_t value) const noexcept {
    return first_of(value) == 0 && last_of(value) == ranks_ - 1;
  }

 private:
  struct node {
    std::uint32_t chunk;
    std::uint32_t first;  // `none` unless the value is first ∘ … ∘ last without gaps
    std::uint32_t last;
  };

  constexpr std::uint32_t combine(index_map& numbers, std::uint32_t a, std::uint32_t b) {
    std::uint32_t& known = numbers[(std::uint64_t{a} << 32) | b];
    if (known != none) return known;
    known = contributions() + static_cast<std::uint32_t>(nodes_.size());
    const bool adjacent = first_of(a) != none && first_of(b) != none && last_of(a) + 1 == first_of(b);
    nodes_.push_back(adjacent ? node{chunk_of(a), first_of(a), last_of(b)} : node{chunk_of(a), none, none});
    for (std::uint32_t w = 0; w < words_; ++w) masks_.push_back(mask_word(a, w) | mask_word(b, w));
    return known;
  }

  constexpr std::uint32_t by_one_step(std::uint32_t chunk) {
    std::uint32_t all = contribution(0, chunk);
    for (int rank = 1; rank < static_cast<int>(ranks_); ++rank) {
      all = combine_in_one_step(all, contribution(rank, chunk));
    }
    return all;
  }

  constexpr std::uint32_t by_pairs(std::uint32_t chunk) {
    std::uint32_t kept[hocket::detail::fixed_tree_depth]{};
    hocket::detail::walk_fixed_tree(
        ranks_, [&](std::size_t level, std::size_t rank) { kept[level] = contribution(static_cast<int>(rank), chunk); },
        [&](std::size_t level) { kept[level] = combine(kept[level], kept[level + 1]); });
    return kept[0];
  }

  constexpr std::uint32_t contributions() const noexcept { return ranks_ * chunks_; }
  constexpr bool is_contribution(std::uint32_t value) const noexcept { return value < contributions(); }
  constexpr std::uint32_t first_of(std::uint32_t value) const noexcept {
    return is_contribution(value) ? value / chunks_ : nodes_[value - contributions()].first;
  }
  constexpr std::uint32_t last_of(std::uint32_t value) const noexcept {
    return is_contribution(value) ? value / chunks_ : nodes_[value - contributions()].last;
  }

  constexpr std::uint64_t mask_word(std::uint32_t value, std::uint32_t word) const noexcept {
    if (!is_contribution(value)) return masks_[std::size_t{value - contributions()} * words_ + word];
    const std::uint32_t rank = value / chunks_;
    return rank / 64 == word ? std::uint64_t{1} << (rank % 64) : 0;
  }

  std::uint32_t ranks_;
  std::uint32_t chunks_;
  std::uint32_t words_;
  std::vector<node> nodes_;
  std::vector<std::uint64_t> masks_;
  index_map pairs_;
  index_map steps_;
};

}  // namespace plan::detail
HOCKET_END_NAMESPACE
