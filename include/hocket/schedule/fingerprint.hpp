// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A hash of a schedule, so that ranks can check whether their schedules are equal without sending them.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/schedule/schedule.hpp>

#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

/// Returns a hash that is equal for schedules with the same actions on the same ranks, whatever their names. Different
/// schedules have equal hashes in one of 2^64 cases. Cost: a few operations per action.
constexpr std::uint64_t fingerprint(const schedule& plan) noexcept {
  std::uint64_t print = 0;
  const auto fold = [&](std::int64_t value) {
    print = (print ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15U;
    print ^= print >> 32;
  };
  fold(plan.microbatches);
  fold(plan.ranks());
  fold(plan.placement.has_two_directions() ? plan.placement.turn() : -1);
  for (int stage = 0; stage < plan.stages(); ++stage) fold(plan.placement.rank_of(stage, 0));
  for (const row& actions : plan.rows) {
    fold(static_cast<std::int64_t>(actions.size()));
    for (const schedule_action& each : actions) {
      for (const task& what : {each.first, each.second}) {
        fold(static_cast<std::int64_t>(what.kind));
        fold(what.stage);
        fold(what.microbatch);
      }
    }
  }
  return print;
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
