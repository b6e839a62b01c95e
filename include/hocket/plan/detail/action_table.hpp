// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// All actions of a plan for one number of ranks, computed once and read many times.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::detail {

/// Lanes are numbered over all ranks: lane l of rank r is r·lanes + l.
struct action_table {
  int ranks = 0;
  plan::collective collective;
  plan::shape shape;
  std::vector<action> actions;
  std::vector<std::size_t> begins;  ///< where each lane begins in `actions`, and the end

  constexpr std::uint32_t lanes() const noexcept { return static_cast<std::uint32_t>(begins.size() - 1); }
  constexpr std::uint32_t length(std::uint32_t lane) const noexcept {
    return static_cast<std::uint32_t>(begins[lane + 1] - begins[lane]);
  }
  constexpr const action& at(std::uint32_t lane, std::uint32_t position) const noexcept {
    return actions[begins[lane] + position];
  }
  constexpr int rank_of(std::uint32_t lane) const noexcept { return static_cast<int>(lane / shape.lanes); }
  constexpr std::uint32_t chunks() const noexcept {
    return static_cast<std::uint32_t>(collective.blocks(ranks)) * shape.chunks_per_block;
  }
};

template <algorithm Plan>
constexpr action_table tabulate(const Plan& plan, int ranks) {
  action_table table{.ranks = ranks, .collective = plan.collective(), .shape = {}, .actions = {}, .begins = {0}};
  if (ranks < 1) return table;
  table.shape = plan.shape(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    for (unsigned lane = 0; lane < table.shape.lanes; ++lane) {
      const unsigned length = plan.length(ranks, rank, lane);
      for (unsigned i = 0; i < length; ++i) table.actions.push_back(plan.at(ranks, rank, lane, i));
      table.begins.push_back(table.actions.size());
    }
  }
  return table;
}

}  // namespace plan::detail
HOCKET_END_NAMESPACE
