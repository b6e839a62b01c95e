// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The costs of the tasks of a pipeline by stage: measured or assumed, in seconds or in any other unit of time.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/float_bits.hpp>
#include <hocket/schedule/schedule_action.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

/// The times of one stage for one microbatch.
struct stage_cost {
  double forward = 1;          ///< time of the forward pass
  double input_gradient = 1;   ///< time of the gradient of the input
  double weight_gradient = 1;  ///< time of the gradient of the parameters
  /// Time of R, the recomputation before the gradients, if the schedule has it; 0: the same as `forward`. For stages
  /// that recompute within their backward pass, include the time in `input_gradient`.
  double recompute = 0;

  friend constexpr bool operator==(const stage_cost&, const stage_cost&) = default;
};

namespace detail {

/// Returns whether `value` is a valid time. A whole search would not detect an infinite value or NaN.
constexpr bool is_time(double value) noexcept { return hocket::detail::is_finite(value) && value >= 0; }

constexpr void require_time(double value, const std::string& of) {
  if (is_time(value)) return;
  raise(errc::invalid_argument,
        of + " is " + std::to_string(value) + "; it must be a finite number that is not negative");
}

}  // namespace detail

/// Transfer times of results between ranks: from the end of the task that produces the result, or of its send, to the
/// begin of the task that needs it.
class link_times {
 public:
  /// One time for all pairs of ranks.
  constexpr link_times(double each = 0) : times_{each}, ranks_(0) { check(); }
  /// `from_to[a][b]` is the time from rank a to rank b; `from_to[a][a]` is ignored. Raises `invalid_argument` if there
  /// are no rows, or not as many columns as rows.
  constexpr explicit link_times(const std::vector<std::vector<double>>& from_to)
      : ranks_(static_cast<int>(from_to.size())) {
    if (from_to.empty()) raise(errc::invalid_argument, "times of links need a row for each rank; found none");
    for (const std::vector<double>& from : from_to) {
      if (from.size() != from_to.size()) {
        raise(errc::invalid_argument, "times of links need " + std::to_string(from_to.size()) +
                                          " columns in each row, as many as rows; found " +
                                          std::to_string(from.size()));
      }
      times_.insert(times_.end(), from.begin(), from.end());
    }
    for (int rank = 0; rank < ranks_; ++rank) times_[at(rank, rank)] = 0;
    check();
  }

  /// Returns the time from rank `from` to rank `to`.
  constexpr double of(int from, int to) const noexcept {
    return from == to ? 0 : times_[ranks_ == 0 ? 0 : at(from, to)];
  }
  /// Returns the longest of these times.
  constexpr double longest() const noexcept {
    double found = 0;
    for (const double each : times_) found = std::max(found, each);
    return found;
  }
  /// Raises `invalid_argument` if the times are given for another number of ranks.
  constexpr void require_ranks(int ranks) const {
    if (ranks_ == 0 || ranks_ == ranks) return;
    raise(errc::invalid_argument, "the times of links are given for " + std::to_string(ranks_) +
                                      " ranks, the schedule has " + std::to_string(ranks) +
                                      ": give one for each pair of ranks, or a single one for all");
  }

 private:
  constexpr std::size_t at(int from, int to) const noexcept {
    return static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(to);
  }
  constexpr void check() const {
    for (const double each : times_) {
      if (!detail::is_time(each)) detail::require_time(each, "the time of a hop");
    }
  }

  std::vector<double> times_;  ///< by sender and receiver
  int ranks_;                  ///< 0: one time for all links
};

/// The times of all stages, and of the links between ranks. Raises `invalid_argument` if a time is negative, infinite
/// or not a number.
class costs {
 public:
  /// One cost for all stages.
  constexpr explicit costs(stage_cost each = {}, link_times hops = {})
      : of_stage_{each}, for_all_(true), hops_(std::move(hops)) {
    check();
  }
  /// `of_stage` has an entry per stage.
  constexpr explicit costs(std::vector<stage_cost> of_stage, link_times hops = {})
      : of_stage_(std::move(of_stage)), for_all_(false), hops_(std::move(hops)) {
    check();
  }

  /// Raises `invalid_argument` if the costs are given for another number of stages or ranks.
  constexpr void require_sizes(int stages, int ranks) const {
    if (!for_all_ && of_stage_.size() != static_cast<std::size_t>(stages)) {
      raise(errc::invalid_argument, "costs are given for " + std::to_string(of_stage_.size()) +
                                        " stages, the schedule has " + std::to_string(stages) +
                                        ": there must be one for each, or a single stage_cost for all");
    }
    hops_.require_ranks(ranks);
    if (!detail::is_time(pair_share)) detail::require_time(pair_share, "the pair_share of costs");
  }

  /// Returns the time from the end of a task on one rank to the begin of a task on another that needs its result, or 0.
  constexpr double hop(int from, int to) const noexcept { return hops_.of(from, to); }
  constexpr const link_times& hops() const noexcept { return hops_; }  ///< the times between ranks

  /// Returns the times of `stage`.
  constexpr const stage_cost& of(int stage) const noexcept {
    return of_stage_[for_all_ ? 0 : static_cast<std::size_t>(stage)];
  }

  /// Returns the time of a task; 0 for messages.
  constexpr double of(const task& what) const noexcept {
    if (!is_computation(what.kind)) return 0;
    const stage_cost& cost = of(what.stage);
    switch (what.kind) {
      case task_kind::forward: return cost.forward;
      case task_kind::recompute: return cost.recompute > 0 ? cost.recompute : cost.forward;
      case task_kind::input_gradient: return cost.input_gradient;
      case task_kind::weight_gradient: return cost.weight_gradient;
      case task_kind::backward: return cost.input_gradient + cost.weight_gradient;
      default: return 0;
    }
  }

  /// Returns the duration of an action. An overlapped pair lasts `pair_share` times the sum of its halves.
  constexpr double of(const schedule_action& what) const noexcept {
    return what.is_pair() ? pair_share * (of(what.first) + of(what.second)) : of(what.first);
  }

  double pair_share = 1;  ///< duration of an overlapped pair, as a fraction of the sum of its halves
  /// For schedules with messages: true if a message stays with its sender until the receiver takes it between two of
  /// its actions, as on hocket's transports with messages that are not small. Otherwise sends complete immediately, and
  /// no rank waits in WAIT_SEND.
  bool sends_wait = false;

 private:
  constexpr void check() const {
    for (std::size_t stage = 0; stage < of_stage_.size(); ++stage) {
      const stage_cost& cost = of_stage_[stage];
      check(cost.forward, "forward", stage);
      check(cost.input_gradient, "input_gradient", stage);
      check(cost.weight_gradient, "weight_gradient", stage);
      check(cost.recompute, "recompute", stage);
    }
  }

  constexpr void check(double time, const char* of, std::size_t stage) const {
    if (detail::is_time(time)) return;
    detail::require_time(time, std::string(of) + " of " + (for_all_ ? "each stage" : "stage " + std::to_string(stage)));
  }

  std::vector<stage_cost> of_stage_;
  bool for_all_;  ///< one entry for all stages
  link_times hops_;
};

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
