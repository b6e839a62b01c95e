// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What the work of a pipeline costs, stage by stage: measured or assumed, in seconds or in any other unit of time.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/pipeline/action.hpp>

#include <cstddef>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

/// The times of one stage for one microbatch.
struct stage_cost {
  double forward = 1;
  double input_gradient = 1;
  double weight_gradient = 1;
  double recompute = 0;  ///< the forward pass once more, before the gradients

  friend constexpr bool operator==(const stage_cost&, const stage_cost&) = default;
};

/// The times of all stages, and of the way between ranks.
class costs {
 public:
  /// The same for every stage.
  constexpr explicit costs(stage_cost each = {}, double hop = 0) : of_stage_{each}, hop_(hop) {}
  /// `of_stage` has an entry per stage.
  constexpr explicit costs(std::vector<stage_cost> of_stage, double hop = 0)
      : of_stage_(std::move(of_stage)), hop_(hop) {}

  /// From the end of a piece of work on one rank to the begin of work on another rank that needs its result.
  constexpr double hop() const noexcept { return hop_; }

  constexpr const stage_cost& of(int stage) const noexcept {
    return of_stage_[of_stage_.size() == 1 ? 0 : static_cast<std::size_t>(stage)];
  }

  constexpr double of(const work& what) const noexcept {
    if (!is_computation(what.what)) return 0;
    const stage_cost& cost = of(what.stage);
    switch (what.what) {
      case verb::forward: return cost.forward;
      case verb::input_gradient: return cost.recompute + cost.input_gradient;
      case verb::weight_gradient: return cost.weight_gradient;
      case verb::backward: return cost.recompute + cost.input_gradient + cost.weight_gradient;
      default: return 0;
    }
  }

  /// An overlapped pair lasts as long as its parts one after the other, unless `pair_share` says less.
  constexpr double of(const action& what) const noexcept {
    return what.is_pair() ? pair_share * (of(what.first) + of(what.second)) : of(what.first);
  }

  double pair_share = 1;  ///< how long an overlapped pair lasts, as a part of the sum of its halves

 private:
  std::vector<stage_cost> of_stage_;
  double hop_;
};

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
