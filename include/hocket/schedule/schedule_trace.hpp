// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The times of all actions of a schedule on a virtual clock: every rank runs its row in order, each action as soon as
/// its inputs are available. They give makespan, bubble and drawings, and show whether the schedule can run at all.
///
/// F(s, m) needs F(s-1, m); a gradient of (s, m) needs F(s, m) and the input gradient of (s+1, m); a weight gradient
/// needs its input gradient; R(s, m) needs F(s, m). A result is available at the end of the action that produces it, on
/// another rank one hop later; if the schedule lists its messages, one hop after its send.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/schedule/costs.hpp>
#include <hocket/schedule/detail/hand_overs.hpp>
#include <hocket/schedule/messages.hpp>
#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/schedule_action.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

/// One action and its times.
struct timed_schedule_action {
  int rank = 0;
  std::size_t index = 0;  ///< in the rank's row
  schedule_action what;   ///< the action
  double begin = 0;       ///< in the unit of the costs; in seconds if measured
  double end = 0;         ///< in the same unit
};

/// How one rank spends its time.
struct rank_timing {
  double begin = 0;      ///< of its first computation
  double end = 0;        ///< of its last action
  double busy = 0;       ///< time spent in computations
  std::size_t done = 0;  ///< number of its actions that could run
};

/// The times of a whole schedule.
struct timing {
  bool complete = true;            ///< whether every action could run
  double makespan = 0;             ///< from 0 to the end of the last action
  std::vector<rank_timing> ranks;  ///< one per rank

  /// Returns how long ranks are idle, on average.
  constexpr double bubble() const noexcept {
    double idle = 0;
    for (const rank_timing& each : ranks) idle += makespan - each.busy;
    return ranks.empty() ? 0 : idle / static_cast<double>(ranks.size());
  }

  /// Returns the bubble as a fraction of the makespan.
  constexpr double bubble_share() const noexcept { return makespan > 0 ? bubble() / makespan : 0; }
};

namespace detail {

/// Runs the rows on a virtual clock, rank by rank, each as far as possible.
class schedule_simulator {
 public:
  /// @param uses_sends whether results leave their rank through the sends that the schedule lists, if any
  constexpr schedule_simulator(const schedule& plan, const costs& cost, bool uses_sends = true)
      : plan_(plan), cost_(cost), outputs_(plan.cells(), never), gradients_(outputs_.size(), never) {
    if (!uses_sends || !has_messages(plan)) return;
    sent_outputs_ = outputs_;
    sent_gradients_ = gradients_;
  }

  template <class Observer>
  constexpr timing run(Observer&& observe) {
    timing result;
    result.ranks.resize(static_cast<std::size_t>(plan_.ranks()));
    std::vector<int> ready;
    for (int rank = plan_.ranks() - 1; rank >= 0; --rank) ready.push_back(rank);
    waiting_.assign(result.ranks.size(), 0);
    if (cost_.sends_wait && lists_messages()) {
      hand_overs_.emplace(plan_, cost_);
      run_with_hand_overs(result, observe);
      ready.clear();
    }
    while (!ready.empty()) {
      const int rank = ready.back();
      ready.pop_back();
      advance(rank, result.ranks[static_cast<std::size_t>(rank)], ready, observe);
    }
    for (int rank = 0; rank < plan_.ranks(); ++rank) {
      const rank_timing& each = result.ranks[static_cast<std::size_t>(rank)];
      result.makespan = std::max(result.makespan, each.end);
      result.complete = result.complete && each.done == plan_.of(rank).size();
    }
    return result;
  }

 private:
  static constexpr double never = -1;

  template <class Observer>
  constexpr void advance(int rank, rank_timing& at, std::vector<int>& ready, Observer& observe) {
    const row& actions = plan_.of(rank);
    waiting_[static_cast<std::size_t>(rank)] = false;
    for (; at.done < actions.size(); ++at.done) {
      const schedule_action& what = actions[at.done];
      double begin = at.end;
      bool possible = true;
      for_each_task(what, [&](const task& each) {
        const double inputs =
            hand_overs_ ? hand_overs_->begin_of(each, rank, inputs_of(each, rank)) : inputs_of(each, rank);
        possible = possible && inputs != never;
        begin = std::max(begin, inputs);
      });
      if (!possible) {
        waiting_[static_cast<std::size_t>(rank)] = true;
        return;
      }
      const double duration = cost_.of(what);
      if (at.busy == 0 && duration > 0) at.begin = begin;
      at.busy += duration;
      at.end = begin + duration;
      if (hand_overs_) hand_overs_->note(what, rank, begin, at.end, at.done + 1 == actions.size());
      observe(timed_schedule_action{rank, at.done, what, begin, at.end});
      for_each_task(what, [&](const task& each) { finish(each, at.end, ready); });
    }
  }

  /// Runs until no rank can continue, then grants the earliest hand-over that a rank waits for, and runs again.
  template <class Observer>
  constexpr void run_with_hand_overs(timing& result, Observer& observe) {
    std::vector<int> ready;
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < plan_.ranks(); ++rank) {
        rank_timing& at = result.ranks[static_cast<std::size_t>(rank)];
        const std::size_t before = at.done;
        advance(rank, at, ready, observe);
        moved = moved || at.done != before;
        ready.clear();
      }
      moved = moved || hand_overs_->grant_earliest();
    }
  }

  /// Returns when all inputs of a task are on its rank, or `never` if that is not known yet.
  constexpr double inputs_of(const task& what, int rank) const {
    switch (what.kind) {
      case task_kind::forward:
        return what.stage == 0 ? 0 : arrival(outputs_, sent_outputs_, what.stage - 1, what.microbatch, rank);
      case task_kind::input_gradient:
      case task_kind::backward: {
        const double output = outputs_[plan_.index(what.stage, what.microbatch)];
        if (what.stage == plan_.stages() - 1 || output == never) return output;
        const double gradient = arrival(gradients_, sent_gradients_, what.stage + 1, what.microbatch, rank);
        return gradient == never ? never : std::max(output, gradient);
      }
      case task_kind::weight_gradient: return gradients_[plan_.index(what.stage, what.microbatch)];
      case task_kind::recompute: return outputs_[plan_.index(what.stage, what.microbatch)];
      default: return 0;
    }
  }

  constexpr bool lists_messages() const noexcept { return !sent_outputs_.empty(); }

  /// Returns when a result is on `rank`: one hop after it was produced or, if messages are listed, after its send.
  /// `hand_overs_` handles sends itself.
  constexpr double arrival(const std::vector<double>& results, const std::vector<double>& sends, int stage,
                           int microbatch, int rank) const {
    const std::size_t at = plan_.index(stage, microbatch);
    const int maker = plan_.placement.rank_of(stage, microbatch);
    if (maker == rank) return results[at];
    const double gone = lists_messages() && !hand_overs_ ? sends[at] : results[at];
    return gone == never ? never : gone + cost_.hop(maker, rank);
  }

  constexpr void finish(const task& what, double end, std::vector<int>& ready) {
    int consumer = -1;
    const auto note = [&](std::vector<double>& ends, int next) {
      if (!ends.empty()) ends[plan_.index(what.stage, what.microbatch)] = end;
      consumer = next;
    };
    switch (what.kind) {
      case task_kind::forward: note(outputs_, what.stage + 1); break;
      case task_kind::send_forward: note(sent_outputs_, what.stage + 1); break;
      case task_kind::input_gradient:
      case task_kind::backward: note(gradients_, what.stage - 1); break;
      case task_kind::send_backward: note(sent_gradients_, what.stage - 1); break;
      default: break;
    }
    if (consumer < 0 || consumer >= plan_.stages()) return;
    const int rank = plan_.placement.rank_of(consumer, what.microbatch);
    if (!waiting_[static_cast<std::size_t>(rank)]) return;
    waiting_[static_cast<std::size_t>(rank)] = false;
    ready.push_back(rank);
  }

  const schedule& plan_;
  const costs& cost_;
  std::vector<double> outputs_;       ///< end of F, by stage and microbatch
  std::vector<double> gradients_;     ///< end of I or B
  std::vector<double> sent_outputs_;  ///< end of its send; empty if the schedule lists no messages
  std::vector<double> sent_gradients_;
  std::vector<char> waiting_;  ///< by rank: could not continue at the last attempt
  std::optional<hand_overs> hand_overs_;
};

/// Returns which forward passes of a row are recomputed, by `index`; empty if none is.
constexpr std::vector<char> recomputed_forwards(const schedule& plan, const row& actions) {
  std::vector<char> found;
  for (const schedule_action& each : actions) {
    if (each.first.kind != task_kind::recompute) continue;
    if (found.empty()) found.assign(plan.cells(), false);
    found[plan.index(each.first.stage, each.first.microbatch)] = true;
  }
  return found;
}

}  // namespace detail

/// Runs `plan` on a virtual clock and calls `observe` with each action (a `timed_schedule_action`), in order within a
/// rank. Stages and microbatches must be in range: see schedule/prove.hpp. Raises `invalid_argument` if `cost` is for
/// another number of stages or ranks. Cost: a few operations per action; with `sends_wait`, also per waiting rank.
template <class Observer>
constexpr timing trace(const schedule& plan, const costs& cost, Observer&& observe) {
  cost.require_sizes(plan.stages(), plan.ranks());
  return detail::schedule_simulator(plan, cost).run(observe);
}

/// Returns the times of a schedule.
constexpr timing run_clock(const schedule& plan, const costs& cost = costs{}) {
  return trace(plan, cost, [](const timed_schedule_action&) {});
}

/// Returns the largest number of activations that a rank holds at the same time, each of one stage for one microbatch:
/// from the begin of its forward pass to the end of its backward pass or weight gradient. A recomputed activation (R)
/// is held during its forward pass, and from R on; in between the rank stores only the stage's input.
constexpr int peak_activations(const schedule& plan, int rank) {
  const std::vector<char> recomputed = detail::recomputed_forwards(plan, plan.of(rank));
  int held = 0;
  int peak = 0;
  for (const schedule_action& each : plan.of(rank)) {
    for_each_task(each, [&](const task& what) {
      if (what.kind == task_kind::forward || what.kind == task_kind::recompute) peak = std::max(peak, ++held);
    });
    for_each_task(each, [&](const task& what) {
      const bool is_dropped =
          what.kind == task_kind::forward && !recomputed.empty() && recomputed[plan.index(what.stage, what.microbatch)];
      if (is_dropped || what.kind == task_kind::backward || what.kind == task_kind::weight_gradient) --held;
    });
  }
  return peak;
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
