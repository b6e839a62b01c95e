// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Makes a schedule on a virtual clock: a rank that is free takes the ready task that it prefers. Which preference is
/// best depends on the costs: schedule/greedy.hpp tries many.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/schedule/costs.hpp>
#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/schedule_action.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline::detail {

/// Order of a forward pass and an input gradient that are both ready.
enum class pass_order : std::uint8_t {
  gradient_first,
  forward_first,        ///< while there is memory
  alternate,            ///< the kind that was not done last
  later_forward_first,  ///< a forward pass of the rank's later stages, then the gradient, then the first stage
  alternate_but_later_forward_first
};

/// The preferences of a rank.
struct preference {
  pass_order order = pass_order::gradient_first;
  bool oldest_first = false;   ///< among passes of one kind: the oldest microbatch, not the latest stage
  double share_of_memory = 1;  ///< fraction of the memory limit that is used
  /// A weight gradient may delay other work by this fraction of its duration. Without expectations of an earlier
  /// attempt, 0 means that weight gradients are done only when the rank waits for no other work, or lacks memory.
  double patience = 0;
};

/// Times at which results were available in an earlier attempt, by stage and microbatch.
struct expectation {
  std::vector<double> outputs;
  std::vector<double> gradients;
};

/// Makes one schedule. Every stage must lie on one rank. All arguments must outlive the scheduler.
class list_scheduler {
 public:
  /// `caps`: by rank, how many activations it may hold, at least one for each of its stages.
  list_scheduler(const schedule& empty, const costs& cost, const std::vector<int>& caps, const preference& prefer,
                 const expectation* expected = nullptr)
      : made_(empty), cost_(cost), prefer_(prefer), expected_(expected), ranks_(made_.rows.size()) {
    const auto sizes = static_cast<std::size_t>(made_.stages()) * static_cast<std::size_t>(made_.microbatches);
    results_.outputs.assign(sizes, never);
    results_.gradients.assign(sizes, never);
    stages_.resize(static_cast<std::size_t>(made_.stages()));
    for (int stage = 0; stage < made_.stages(); ++stage) {
      rank_state& rank = ranks_[static_cast<std::size_t>(made_.placement.rank_of(stage, 0))];
      stage_of(stage).chunk = static_cast<int>(rank.stages.size());
      rank.stages.push_back(stage);
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      ranks_[r].cap =
          std::max(static_cast<int>(ranks_[r].stages.size()), static_cast<int>(prefer.share_of_memory * caps[r]));
    }
  }

  schedule make() {
    for (int rank = 0; rank < made_.ranks(); ++rank) add_decision(0, rank);
    while (!events_.empty()) {
      const auto [time, rank] = events_.top();
      events_.pop();
      decide(rank, time);
    }
    return std::move(made_);
  }

  /// After `make`: times at which results were available.
  const expectation& results() const noexcept { return results_; }

 private:
  /// Not infinity: with -ffast-math, compilers assume that no value is infinite.
  static constexpr double never = std::numeric_limits<double>::max();

  struct stage_state {
    int chunk = 0;  ///< index among the stages of its rank
    int forwards = 0;
    int gradients = 0;
  };

  struct rank_state {
    std::vector<int> stages;
    std::vector<task> weights;  ///< weight gradients whose input gradients are complete
    std::size_t weights_done = 0;
    double free = 0;  ///< end of its current task
    int held = 0;
    int cap = 0;
    task_kind last = task_kind::nothing;  ///< of forward passes and input gradients
  };

  struct candidate {
    task what;
    double ready = never;     ///< when its input is available, if that is known
    double expected = never;  ///< when its input was available in an earlier attempt
    explicit operator bool() const noexcept { return what.kind != task_kind::nothing; }
  };

  /// The tasks that a rank could do now, and when other tasks become ready.
  struct choice {
    candidate forward;
    candidate gradient;
    double known = never;       ///< when another task is certain to be ready
    double next_use = never;    ///< when another task is expected to be ready
    bool waits = false;         ///< for the input of a task
    bool lacks_memory = false;  ///< for a forward pass
  };

  stage_state& stage_of(int stage) { return stages_[static_cast<std::size_t>(stage)]; }
  const stage_state& stage_of(int stage) const { return stages_[static_cast<std::size_t>(stage)]; }
  rank_state& rank_of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const rank_state& rank_of(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }

  void add_decision(double time, int rank) { events_.push({time, rank}); }

  // ---- what could be done ----

  /// Returns when the result of (stage, microbatch) is on `rank`.
  double arrival(const std::vector<double>& results, int stage, int microbatch, int rank) const {
    return results[made_.index(stage, microbatch)] + cost_.hop(made_.placement.rank_of(stage, microbatch), rank);
  }

  /// Reserves memory for the later stages of microbatches in progress, which could never finish without it.
  bool has_memory_for(int stage, const rank_state& own) const {
    const int later = static_cast<int>(own.stages.size()) - 1 - stage_of(stage).chunk;
    return own.held + 1 + later <= own.cap;
  }

  candidate next_forward(int stage, int rank) const {
    const int m = stage_of(stage).forwards;
    if (m == made_.microbatches) return {};
    candidate next{{task_kind::forward, stage, m}, 0, 0};
    if (stage == 0) return next;
    next.ready = arrival(results_.outputs, stage - 1, m, rank);
    if (expected_ != nullptr) next.expected = arrival(expected_->outputs, stage - 1, m, rank);
    return next;
  }

  candidate next_gradient(int stage, int rank) const {
    const int m = stage_of(stage).gradients;
    if (m == stage_of(stage).forwards) return {};
    candidate next{{task_kind::input_gradient, stage, m}, 0, 0};
    if (stage + 1 == made_.stages()) return next;
    next.ready = arrival(results_.gradients, stage + 1, m, rank);
    if (expected_ != nullptr) next.expected = arrival(expected_->gradients, stage + 1, m, rank);
    return next;
  }

  bool is_better(const candidate& a, const candidate& b) const {
    if (!b) return true;
    if (prefer_.oldest_first && a.what.microbatch != b.what.microbatch) return a.what.microbatch < b.what.microbatch;
    return a.what.stage > b.what.stage;
  }

  choice look(int rank, double now) const {
    choice found;
    const auto consider = [&](candidate& best, const candidate& next) {
      if (!next) return;
      if (next.ready <= now) {
        if (is_better(next, best)) best = next;
        return;
      }
      found.waits = true;
      found.known = std::min(found.known, next.ready);
      found.next_use = std::min(found.next_use, next.ready < never ? next.ready : std::max(now, next.expected));
    };
    for (const int stage : rank_of(rank).stages) {
      const candidate forward = next_forward(stage, rank);
      if (forward && !has_memory_for(stage, rank_of(rank))) found.lacks_memory = true;
      else consider(found.forward, forward);
      consider(found.gradient, next_gradient(stage, rank));
    }
    return found;
  }

  // ---- what is done ----

  void decide(int rank, double now) {
    rank_state& own = rank_of(rank);
    if (own.free > now) return;
    const choice found = look(rank, now);
    if (found.forward && (!found.gradient || takes_forward(found.forward.what, own))) {
      return start(rank, found.forward.what, now);
    }
    if (found.gradient) return start(rank, found.gradient.what, now);
    if (own.weights_done < own.weights.size()) {
      const task& oldest = own.weights[own.weights_done];
      if (found.lacks_memory || has_time_for(oldest, found, now)) return start(rank, oldest, now);
    }
    if (found.known < never) add_decision(found.known, rank);
  }

  bool takes_forward(const task& forward, const rank_state& own) const {
    const bool is_later = stage_of(forward.stage).chunk > 0;
    switch (prefer_.order) {
      case pass_order::gradient_first: return false;
      case pass_order::forward_first: return true;
      case pass_order::alternate: return own.last != task_kind::forward;
      case pass_order::later_forward_first: return is_later;
      case pass_order::alternate_but_later_forward_first: return is_later || own.last != task_kind::forward;
    }
    return false;
  }

  bool has_time_for(const task& weight_gradient, const choice& found, double now) const {
    if (expected_ == nullptr && prefer_.patience == 0) return !found.waits;
    return now + (1 - prefer_.patience) * cost_.of(weight_gradient) <= found.next_use;
  }

  void start(int rank, const task& what, double now) {
    rank_state& own = rank_of(rank);
    made_.of(rank).push_back({what, {}});
    const double end = now + cost_.of(what);
    own.free = end;
    add_decision(end, rank);
    if (what.kind == task_kind::weight_gradient) {
      --own.held;
      ++own.weights_done;
      return;
    }
    own.last = what.kind;
    if (what.kind == task_kind::forward) {
      ++own.held;
      ++stage_of(what.stage).forwards;
      results_.outputs[made_.index(what.stage, what.microbatch)] = end;
      if (what.stage + 1 < made_.stages()) propagate(rank, what.stage + 1, what.microbatch, end);
    } else {
      ++stage_of(what.stage).gradients;
      results_.gradients[made_.index(what.stage, what.microbatch)] = end;
      own.weights.push_back({task_kind::weight_gradient, what.stage, what.microbatch});
      if (what.stage > 0) propagate(rank, what.stage - 1, what.microbatch, end);
    }
  }

  /// Lets the rank that needs a result decide again when the result is available.
  void propagate(int rank, int stage, int microbatch, double end) {
    const int consumer = made_.placement.rank_of(stage, microbatch);
    if (consumer != rank) add_decision(std::max(end + cost_.hop(rank, consumer), rank_of(consumer).free), consumer);
  }

  schedule made_;
  const costs& cost_;
  preference prefer_;
  const expectation* expected_;
  std::vector<stage_state> stages_;
  std::vector<rank_state> ranks_;
  expectation results_;
  std::priority_queue<std::pair<double, int>, std::vector<std::pair<double, int>>, std::greater<>> events_;
};

}  // namespace plan::pipeline::detail
HOCKET_END_NAMESPACE
