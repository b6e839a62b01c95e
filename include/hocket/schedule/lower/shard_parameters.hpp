// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Lowering pass for parameters that are sharded over data-parallel ranks: gathers the parameters of a stage before its
/// next use, and drops them when other stages come first.
#pragma once

#include <hocket/schedule/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {
namespace detail {

/// Returns the stages of the actions from `begin` on, without repetition, up to `most`. A pair is not split.
constexpr std::vector<int> next_stages(const row& actions, std::size_t begin, std::size_t most) {
  std::vector<int> stages;
  for (std::size_t i = begin; i < actions.size() && stages.size() < most; ++i) {
    for_each_task(actions[i], [&](const task& what) {
      if (std::find(stages.begin(), stages.end(), what.stage) == stages.end()) stages.push_back(what.stage);
    });
  }
  return stages;
}

}  // namespace detail

/// Each rank has the parameters of at most `most` stages at a time (one more if a pair needs it): those that it needs
/// next. Inserts before each action RESHARD of stages that are no longer among them, in the order in which they were
/// gathered, then UNSHARD of new ones. At the end of the row all are dropped.
constexpr schedule shard_parameters(schedule plan, std::size_t most = 3) {
  for (row& actions : plan.rows) {
    row with_shards;
    std::vector<int> active;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const std::vector<int> wanted = detail::next_stages(actions, i, most);
      const auto contains = [](const std::vector<int>& list, int stage) {
        return std::find(list.begin(), list.end(), stage) != list.end();
      };
      std::vector<int> kept;
      for (const int stage : active) {
        if (contains(wanted, stage)) kept.push_back(stage);
        else with_shards.push_back({{task_kind::reshard, stage, -1}, {}});
      }
      for (const int stage : wanted) {
        if (contains(kept, stage)) continue;
        kept.push_back(stage);
        with_shards.push_back({{task_kind::unshard, stage, -1}, {}});
      }
      active = std::move(kept);
      with_shards.push_back(actions[i]);
    }
    for (const int stage : active) with_shards.push_back({{task_kind::reshard, stage, -1}, {}});
    actions = std::move(with_shards);
  }
  return plan;
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
