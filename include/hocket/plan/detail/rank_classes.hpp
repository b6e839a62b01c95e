// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which ranks the virtual clock of plan/trace.hpp simulates: all of them, or rank 0 for all in a symmetric plan.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/symmetry.hpp>

#include <cstddef>

HOCKET_BEGIN_NAMESPACE
namespace plan::detail {

/// Sender and receiver of a message, as mailboxes are addressed.
struct route {
  int from = 0;
  int to = 0;
};

/// If rank 0 stands for all ranks, what a peer sends to it is what it sends itself to the corresponding peer at the same
/// time. Both use the mailbox of that peer, so that rank 0 receives its own messages.
class rank_classes {
 public:
  constexpr rank_classes(int ranks, rank_symmetry as) noexcept : ranks_(ranks), as_(as) {}

  constexpr bool rank_0_for_all() const noexcept { return as_ != rank_symmetry::none; }
  /// The number of simulated ranks.
  constexpr std::size_t count() const noexcept { return rank_0_for_all() ? 1 : static_cast<std::size_t>(ranks_); }
  /// The number, among the simulated ranks, of the one that stands for `rank`.
  constexpr std::size_t index(int rank) const noexcept { return rank_0_for_all() ? 0 : static_cast<std::size_t>(rank); }

  /// One of both ranks is 0 if rank 0 stands for all.
  constexpr route route_of(int from, int to) const noexcept {
    switch (as_) {
      case rank_symmetry::none: return {from, to};
      case rank_symmetry::rotation:
      case rank_symmetry::rotated_sends: return {0, from == 0 ? to : ranks_ - from};
      case rank_symmetry::exclusive_or:
      case rank_symmetry::exchange: break;
    }
    return {0, from == 0 ? to : from};
  }

 private:
  int ranks_;
  rank_symmetry as_;
};

}  // namespace plan::detail
HOCKET_END_NAMESPACE
