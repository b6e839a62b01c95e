// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A search for a short schedule with measured costs: the published schedules assume that all stages and all three
/// passes cost the same, and lose time if they do not. In each attempt, a rank that is free takes the ready task that
/// it prefers, within its memory limit. The search tries many preferences on the virtual clock, and the published
/// schedules that fit, and returns the shortest, so it is never longer than any of those. If allowed, it also tries
/// them with recomputed activations, which need less memory and take more time.
///
/// Filling gaps with weight gradients under a memory limit is due to Qi et al. (zero bubble, 2024). New here are
/// expectations: an attempt that does weight gradients last shows when all other results could be available. The next
/// attempts do weight gradients where, by these times, no rank waits for them.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/schedule/costs.hpp>
#include <hocket/schedule/detail/list_scheduler.hpp>
#include <hocket/schedule/dual_pipe.hpp>
#include <hocket/schedule/gpipe.hpp>
#include <hocket/schedule/interleaved.hpp>
#include <hocket/schedule/one_forward_one_backward.hpp>
#include <hocket/schedule/placement.hpp>
#include <hocket/schedule/recompute_activations.hpp>
#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/schedule_trace.hpp>
#include <hocket/schedule/v_half.hpp>
#include <hocket/schedule/zero_bubble_v.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

namespace detail {

/// Returns the group sizes that interleaved schedules allow; if trying all would take long, only those that divide the
/// number of microbatches. Returns {0} if there is no choice.
inline std::vector<int> groups_of(int ranks, int microbatches, int stages_per_rank) {
  if (stages_per_rank == 1 || microbatches < ranks) return {0};
  constexpr double most_actions = 1'000'000;
  const bool all = 6. * ranks * stages_per_rank * microbatches * (microbatches - ranks + 1) <= most_actions;
  std::vector<int> found;
  for (int group = ranks; group <= microbatches; ++group) {
    if ((all || microbatches % group == 0) && is_group(ranks, microbatches, group)) found.push_back(group);
  }
  return found;
}

/// Returns whether both placements put each stage on the same rank, whatever their kinds.
inline bool assigns_equally(const placement& a, const placement& b) {
  if (a.has_two_directions() || b.has_two_directions() || a.stages() != b.stages()) return false;
  for (int stage = 0; stage < a.stages(); ++stage) {
    if (a.rank_of(stage, 0) != b.rank_of(stage, 0)) return false;
  }
  return true;
}

}  // namespace detail

/// Returns all published schedules for a placement and a number of microbatches: interleaved ones with groups of all
/// sizes or, if the schedules are large, with groups of equal size.
inline std::vector<schedule> published_schedules(const placement& where, int microbatches) {
  const int ranks = where.ranks();
  const int stages_per_rank = where.stages() / ranks;
  std::vector<schedule> all;
  if (detail::assigns_equally(where, placement::loop(ranks, stages_per_rank))) {
    all.push_back(breadth_first(ranks, microbatches, stages_per_rank));
    if (stages_per_rank == 1) {
      all.push_back(gpipe(ranks, microbatches));
      all.push_back(one_forward_one_backward(ranks, microbatches));
    }
    for (const int group : detail::groups_of(ranks, microbatches, stages_per_rank)) {
      all.push_back(interleaved(ranks, microbatches, stages_per_rank, group));
      all.push_back(stages_per_rank == 1 ? zero_bubble(ranks, microbatches)
                                         : interleaved_zero_bubble(ranks, microbatches, stages_per_rank, group));
    }
  } else if (detail::assigns_equally(where, placement::v_shape(ranks))) {
    all.push_back(zero_bubble_v(ranks, microbatches));
    all.push_back(v_half(ranks, microbatches));
    all.push_back(v_min(ranks, microbatches));
    if (microbatches / 2 >= ranks) all.push_back(dual_pipe_v(ranks, microbatches));
  } else if (where.has_two_directions() && ranks % 2 == 0 && microbatches / 2 >= ranks) {
    all.push_back(dual_pipe(ranks, microbatches));
  }
  for (schedule& each : all) each.placement = where;
  return all;
}

/// Whether a search may let stages drop and recompute their activations (R).
enum class recomputation : std::uint8_t {
  none,
  where_shorter  ///< on all stages, if that gives the shortest schedule within the memory limits
};

/// The result of a search.
struct search_result {
  schedule plan;    ///< the shortest
  double makespan;  ///< of `plan`
  schedule
      best_published;  ///< the shortest published schedule within the limits, with or without R; without actions: none
  double published;    ///< its makespan; `never` if there is none
  int attempts;        ///< number of schedules made

  /// Returns whether `plan` is shorter than every published schedule.
  bool is_new() const noexcept { return makespan < published; }
};

namespace detail {

/// Returns costs under which a schedule without R lasts as long as the schedule with R before each gradient.
inline costs with_recomputation(const costs& cost, int stages) {
  std::vector<stage_cost> all;
  for (int stage = 0; stage < stages; ++stage) {
    all.push_back(cost.of(stage));
    all.back().input_gradient += cost.of(task{task_kind::recompute, stage, 0});
  }
  return costs(std::move(all), cost.hops());
}

/// Tries preferences, those first that were the best most often, until enough actions have been scheduled.
class greedy_search {
 public:
  greedy_search(const placement& where, int microbatches, const costs& cost, std::vector<int> caps)
      : cost_(cost), caps_(std::move(caps)), empty_("greedy", where, microbatches),
        found_{empty_, never, empty_, never, 0},
        cost_of_attempt_(3 * static_cast<std::size_t>(where.stages()) * static_cast<std::size_t>(microbatches)) {}

  search_result search(recomputation allowed) {
    std::vector<schedule> published = published_schedules(empty_.placement, empty_.microbatches);
    for (const schedule& each : published) keep_published_if_better(each);
    sweep without{cost_, caps_, false};
    try_all(without);
    if (allowed == recomputation::none) return std::move(found_);
    for (schedule& each : published) keep_published_if_better(recompute_activations(std::move(each)));
    // Dropped activations need no memory, so the limits apply only to the finished schedule with R.
    const std::vector<int> no_caps(caps_.size(), empty_.stages() * empty_.microbatches);
    const costs longer = with_recomputation(cost_, empty_.stages());
    sweep with{longer, no_caps, true};
    try_all(with);
    return std::move(found_);
  }

 private:
  /// Not infinity: with -ffast-math, compilers assume that no value is infinite.
  static constexpr double never = std::numeric_limits<double>::max();
  static constexpr std::size_t most_actions = 6'000'000;  // about two seconds
  static constexpr int least_attempts = 9;                // all kinds of patience, once

  /// One round through the preferences.
  struct sweep {
    const costs& cost;  ///< costs that schedules are made for
    const std::vector<int>& caps;
    bool forms_again;  ///< whether R is inserted into each schedule
    int attempts = 0;
  };

  bool is_over(const sweep& round) const noexcept {
    return round.attempts >= least_attempts &&
           static_cast<std::size_t>(round.attempts) * cost_of_attempt_ > most_actions;
  }

  bool fits(const schedule& plan) const {
    for (int rank = 0; rank < plan.ranks(); ++rank) {
      if (peak_activations(plan, rank) > caps_[static_cast<std::size_t>(rank)]) return false;
    }
    return true;
  }

  void keep_if_better(schedule plan, double makespan) {
    if (makespan >= found_.makespan) return;
    found_.makespan = makespan;
    found_.plan = std::move(plan);
  }

  void keep_published_if_better(const schedule& plan) {
    if (!fits(plan)) return;
    const double makespan = run_clock(plan, cost_).makespan;
    if (makespan >= found_.published) return;
    found_.published = makespan;
    found_.best_published = plan;
    keep_if_better(plan, makespan);
  }

  void try_all(sweep& round) {
    for (const double share : {1., 0.75, 0.5}) {
      for (const pass_order order : {pass_order::gradient_first, pass_order::forward_first, pass_order::alternate,
                                     pass_order::alternate_but_later_forward_first, pass_order::later_forward_first}) {
        for (const bool oldest_first : {false, true}) try_patience(round, {order, oldest_first, share, 0});
      }
    }
  }

  void try_patience(sweep& round, preference prefer) {
    prefer.patience = 1;
    const expectation eager = attempt(round, prefer, nullptr);
    prefer.patience = 0.5;
    attempt(round, prefer, nullptr);
    try_expecting(round, prefer, eager);
    prefer.patience = 0;
    const expectation weights_last = attempt(round, prefer, nullptr);
    try_expecting(round, prefer, weights_last);
  }

  void try_expecting(sweep& round, preference prefer, const expectation& expected) {
    for (const double patience : {0., 0.3, 0.6}) {
      prefer.patience = patience;
      attempt(round, prefer, &expected);
    }
  }

  expectation attempt(sweep& round, const preference& prefer, const expectation* expected) {
    if (is_over(round)) return {};
    ++round.attempts;
    ++found_.attempts;
    list_scheduler scheduler(empty_, round.cost, round.caps, prefer, expected);
    schedule made = scheduler.make();
    if (round.forms_again) made = recompute_activations(std::move(made));
    const double makespan = run_clock(made, cost_).makespan;
    if (makespan < found_.makespan && (!round.forms_again || fits(made))) keep_if_better(std::move(made), makespan);
    return scheduler.results();
  }

  const costs& cost_;
  std::vector<int> caps_;
  schedule empty_;
  search_result found_;
  std::size_t cost_of_attempt_;
};

}  // namespace detail

namespace detail {

/// Refuses costs with which a makespan could be infinite, because then no schedule would be better than none. The bound
/// is all work done sequentially.
inline void require_finite_sum(const placement& where, int microbatches, const costs& cost) {
  double sum = 0;
  for (int stage = 0; stage < where.stages(); ++stage) {
    const stage_cost& each = cost.of(stage);
    sum += 2 * each.forward + each.recompute + each.input_gradient + each.weight_gradient + 2 * cost.hops().longest();
  }
  if (is_time(sum * microbatches * std::max(1., cost.pair_share))) return;
  raise(errc::invalid_argument,
        "greedy: the costs of all stages and microbatches have no finite sum; take a larger unit of time");
}

}  // namespace detail

/// Returns the shortest schedule found for `where` with the given costs. `most_activations`: by rank, the number of
/// activations (of one stage, for one microbatch) that the rank may hold; empty: no limit. With
/// `recomputation::where_shorter` the schedule may have R, which the stages must then support (pipeline/stage.hpp).
/// Deterministic: all ranks that search with equal arguments find the same schedule. Takes about two seconds with many
/// stages or microbatches, twice that with recomputation.
inline search_result greedy(const placement& where, int microbatches, const costs& cost,
                            std::vector<int> most_activations = {}, recomputation allowed = recomputation::none) {
  detail::require_sizes("greedy", where.ranks(), microbatches);
  detail::checked_count(where, microbatches);
  cost.require_sizes(where.stages(), where.ranks());
  detail::require_finite_sum(where, microbatches, cost);
  if (where.has_two_directions()) {
    raise(errc::invalid_argument,
          "greedy needs a placement in which each stage lies on one rank: loop, v_shape or given");
  }
  if (most_activations.empty()) {
    most_activations.assign(static_cast<std::size_t>(where.ranks()), where.stages() * microbatches);
  }
  if (most_activations.size() != static_cast<std::size_t>(where.ranks())) {
    raise(errc::invalid_argument,
          hocket::detail::concat({"greedy needs a limit of memory for each of the ", where.ranks(),
                                  " ranks, or none; found ", most_activations.size()}));
  }
  std::vector<int> stages_of(most_activations.size(), 0);
  for (int stage = 0; stage < where.stages(); ++stage) ++stages_of[static_cast<std::size_t>(where.rank_of(stage, 0))];
  for (std::size_t rank = 0; rank < stages_of.size(); ++rank) {
    if (most_activations[rank] >= stages_of[rank]) continue;
    raise(errc::invalid_argument,
          hocket::detail::concat({"rank ", rank, " may hold ", most_activations[rank], " activations; its ",
                                  stages_of[rank], " stages need at least one each"}));
  }
  return detail::greedy_search(where, microbatches, cost, std::move(most_activations)).search(allowed);
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
