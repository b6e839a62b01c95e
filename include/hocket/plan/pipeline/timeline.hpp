// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// When everything in a schedule happens, as a list: what the virtual clock says, or what a run has measured. Drawings
/// are made from it, so that both look alike.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/pipeline/clock.hpp>
#include <hocket/plan/pipeline/costs.hpp>
#include <hocket/plan/pipeline/schedule.hpp>

#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

/// Within a rank in the order of time.
using timeline = std::vector<timed_action>;

/// What the clock says.
inline timeline timeline_of(const schedule& plan, const costs& cost = costs{}) {
  timeline all;
  all.reserve(plan.length());
  trace(plan, cost, [&](const timed_action& each) { all.push_back(each); });
  return all;
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
