// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Algorithms whose ranks pair up by powers of two, for any number of ranks: who sits out, and who stands in for whom.
#pragma once

#include <hocket/core/config.hpp>

#include <bit>

HOCKET_BEGIN_NAMESPACE
namespace plan::detail {

/// With p = 2^k + e ranks, the first 2e ranks form pairs of neighbours. The even one of a pair hands its contribution
/// to the odd one, sits out, and gets the result in the end. What is left is 2^k members, numbered in rank order, so that
/// the order of combination is kept.
class fold {
 public:
  constexpr fold(int ranks, int rank) noexcept
      : members_(static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)))), extra_(ranks - members_),
        rank_(rank) {}

  constexpr int members() const noexcept { return members_; }
  /// log2 of the number of members.
  constexpr int steps() const noexcept { return std::countr_zero(static_cast<unsigned>(members_)); }

  constexpr bool paired() const noexcept { return rank_ < 2 * extra_; }
  constexpr bool sits_out() const noexcept { return paired() && rank_ % 2 == 0; }
  constexpr bool stands_in() const noexcept { return paired() && rank_ % 2 == 1; }

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
