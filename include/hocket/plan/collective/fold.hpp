// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Reduces any number of ranks to a power of two for algorithms that pair ranks: some ranks sit out, others stand in.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/symmetry.hpp>

#include <bit>

HOCKET_BEGIN_NAMESPACE
namespace plan::detail {

/// With p = 2^k + e ranks, the first 2e ranks form pairs of neighbours. The even rank of a pair sends its contribution
/// to the odd rank, sits out, and receives the result at the end. This leaves 2^k members, numbered in rank order,
/// which preserves the order of combination.
class fold {
 public:
  constexpr fold(int ranks, int rank) noexcept
      : members_(static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)))), extra_(ranks - members_),
        rank_(rank) {}

  constexpr int members() const noexcept { return members_; }
  /// log2 of the number of members.
  constexpr int steps() const noexcept { return std::countr_zero(static_cast<unsigned>(members_)); }

  /// If no rank sits out, members meet those whose numbers differ in one bit.
  constexpr rank_symmetry symmetry() const noexcept {
    return extra_ == 0 ? rank_symmetry::exclusive_or : rank_symmetry::none;
  }

  constexpr bool paired() const noexcept { return rank_ < 2 * extra_; }
  constexpr bool is_folded() const noexcept { return paired() && rank_ % 2 == 0; }
  constexpr bool stands_for_pair() const noexcept { return paired() && rank_ % 2 == 1; }

  /// This rank's number among the members.
  constexpr int member() const noexcept { return paired() ? rank_ / 2 : rank_ - extra_; }
  constexpr int rank_of(int member) const noexcept { return member < extra_ ? 2 * member + 1 : member + extra_; }

 private:
  int members_;
  int extra_;
  int rank_;
};

}  // namespace plan::detail
HOCKET_END_NAMESPACE
