// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The plans that simulated ranks can run, which are those without peer pointers.
#pragma once

#include <hocket/plan/plan.hpp>

#include <vector>

#include "plan/every_plan.hpp"

namespace hocket_test {

inline std::vector<hocket::plan::any_algorithm> message_plans(int ranks) {
  std::vector<hocket::plan::any_algorithm> all;
  for_every_plan(ranks, [&](const auto& each) {
    if (!each.shape(ranks).peer_pointers) all.emplace_back(each);
  });
  all.emplace_back(hocket::plan::double_tree{.chunks_per_half = 16});
  return all;
}

}  // namespace hocket_test
