// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The proof that a schedule is complete and comes to an end: every stage processes every microbatch once, forward and
/// backward, on the rank where the stage lies; and no ranks wait for each other in a cycle. It needs no run and no
/// ranks, so that an error in a user-defined schedule is found here, and not after an hour on a cluster.
///
/// @code
/// static_assert(plan::pipeline::prove(plan::pipeline::one_forward_one_backward(4, 8)));
/// @endcode
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>
#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/schedule_action.hpp>
#include <hocket/schedule/schedule_trace.hpp>
#include <hocket/schedule/text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

/// The rule that a schedule violates.
enum class schedule_violation : std::uint8_t {
  none,
  wrong_number_of_rows,
  no_such_stage,
  no_such_microbatch,
  not_a_pair,
  wrong_rank,
  done_twice,
  missing,
  two_kinds_of_backward,
  before_its_input,
  not_gathered,
  not_dropped,
  copies_apart,
  needless_message,
  overwritten_while_read,
  deadlock
};

/// Returns the violated rule as text.
constexpr const char* to_string(schedule_violation what) noexcept {
  switch (what) {
    case schedule_violation::none: return "no violation";
    case schedule_violation::wrong_number_of_rows: return "there must be a row for each rank of the placement";
    case schedule_violation::no_such_stage: return "the stage does not exist";
    case schedule_violation::no_such_microbatch: return "the microbatch does not exist";
    case schedule_violation::not_a_pair: return "only a forward and a backward pass can overlap, in this order";
    case schedule_violation::wrong_rank: return "the placement puts this stage on another rank";
    case schedule_violation::done_twice: return "the same work must be done only once";
    case schedule_violation::missing: return "work is missing";
    case schedule_violation::two_kinds_of_backward:
      return "a stage does the backward pass of a microbatch as B, or as I and W, not both";
    case schedule_violation::before_its_input: return "the work comes before what it needs on the same rank";
    case schedule_violation::not_gathered:
      return "a stage whose parameters are gathered needs UNSHARD before this, and RESHARD only after it";
    case schedule_violation::not_dropped: return "what UNSHARD gathers must be dropped by RESHARD before the row ends";
    case schedule_violation::copies_apart:
      return "two ranks have copies of this stage, each with the gradients of some microbatches: before UPDATE there "
             "must be REDUCE_GRAD and WAIT_REDUCE_GRAD";
    case schedule_violation::needless_message:
      return "the stage has no neighbour on another rank to exchange this with";
    case schedule_violation::overwritten_while_read:
      return "a buffer must not be overwritten while it is read, but no action waits until this has been sent";
    case schedule_violation::deadlock: return "each of two ranks waits for what the other does only after its own wait";
  }
  return "unknown";
}

/// A place in a schedule.
struct schedule_step {
  int rank = -1;
  std::size_t index = 0;  ///< in the rank's row
  schedule_action what;   ///< the action
};

/// The result of a proof: the schedule is correct, or which steps are in conflict, and why.
struct schedule_proof {
  bool ok = false;                                     ///< whether the schedule is correct
  schedule_violation what = schedule_violation::none;  ///< the kind of error, if it is not
  schedule_step where;                                 ///< the step at fault
  schedule_step other;                                 ///< the step that it is in conflict with
  task missing;                                        ///< `schedule_violation::missing`: the task that is missing
  int rank_without_task = -1;  ///< the rank whose row lacks the missing task, or -1 if all rows lack it

  constexpr explicit operator bool() const noexcept { return ok; }

  /// Returns a readable text: what is wrong, where, and which other step is in conflict.
  std::string message() const {
    if (ok) return "the schedule is complete and comes to an end";
    std::string text = pipeline::to_string(what);
    if (missing.kind != task_kind::nothing)
      hocket::detail::append(text, {": ", missing_from_text(), pipeline::to_string(missing)});
    if (where.rank >= 0) text += ": " + text_of(where);
    if (other.rank >= 0) text += conjunction() + text_of(other);
    return text;
  }

 private:
  std::string missing_from_text() const {
    return rank_without_task < 0 ? "no rank does " : hocket::detail::concat({"rank ", rank_without_task, " lacks "});
  }

  const char* conjunction() const noexcept {
    if (what == schedule_violation::deadlock) return ", and ";
    if (what == schedule_violation::overwritten_while_read)
      return "; it is overwritten, in the next run of the row, by ";
    return "; the other is ";
  }

  static std::string text_of(const schedule_step& at) {
    return hocket::detail::concat({"rank ", at.rank, ", step ", at.index, " (", pipeline::to_string(at.what), ')'});
  }
};

namespace detail {

/// Checks all rules for a schedule, and stops at the first violation.
class schedule_prover {
 public:
  constexpr explicit schedule_prover(const schedule& plan) : plan_(plan) {}

  constexpr schedule_proof prove() {
    check_each_alone();
    if (!failed()) check_all_is_done_once();
    if (!failed()) check_parameter_tasks();
    if (!failed()) check_no_cyclic_wait();
    found_.ok = !failed();
    return found_;
  }

 private:
  /// A computation and its position.
  struct located {
    task what;
    int rank;
    std::size_t index;

    friend constexpr bool operator<(const located& a, const located& b) noexcept {
      if (a.what.stage != b.what.stage) return a.what.stage < b.what.stage;
      if (a.what.microbatch != b.what.microbatch) return a.what.microbatch < b.what.microbatch;
      if (a.what.kind != b.what.kind) return a.what.kind < b.what.kind;
      return std::pair(a.rank, a.index) < std::pair(b.rank, b.index);
    }
  };

  constexpr bool failed() const noexcept { return found_.what != schedule_violation::none; }

  constexpr schedule_step step_at(int rank, std::size_t index) const { return {rank, index, plan_.of(rank)[index]}; }
  constexpr schedule_step step_at(const located& at) const { return step_at(at.rank, at.index); }

  constexpr void fail(schedule_violation what, const schedule_step& where, const schedule_step& other = {}) {
    if (failed()) return;
    found_.what = what;
    found_.where = where;
    found_.other = other;
  }

  // ---- each action alone ----

  constexpr void check_each_alone() {
    if (static_cast<int>(plan_.rows.size()) != plan_.ranks()) found_.what = schedule_violation::wrong_number_of_rows;
    for (int rank = 0; rank < plan_.ranks() && !failed(); ++rank) {
      for (std::size_t i = 0; i < plan_.of(rank).size(); ++i) check_alone(step_at(rank, i));
    }
  }

  constexpr void check_alone(const schedule_step& at) {
    const bool joins_two = at.what.is_pair();
    if (at.what.first.kind == task_kind::nothing ||
        (joins_two &&
         !(at.what.first.kind == task_kind::forward &&
           (at.what.second.kind == task_kind::backward || at.what.second.kind == task_kind::input_gradient)))) {
      fail(schedule_violation::not_a_pair, at);
    }
    for_each_task(at.what, [&](const task& what) {
      const bool one_microbatch = has_microbatch(what.kind);
      if (what.stage < 0 || what.stage >= plan_.stages()) fail(schedule_violation::no_such_stage, at);
      else if (one_microbatch && (what.microbatch < 0 || what.microbatch >= plan_.microbatches))
        fail(schedule_violation::no_such_microbatch, at);
      else if (one_microbatch ? plan_.placement.rank_of(what.stage, what.microbatch) != at.rank
                              : !plan_.placement.holds(at.rank, what.stage))
        fail(schedule_violation::wrong_rank, at);
    });
  }

  // ---- everything once ----

  constexpr void check_all_is_done_once() {
    std::vector<located> all;
    for (int rank = 0; rank < plan_.ranks(); ++rank) {
      for (std::size_t i = 0; i < plan_.of(rank).size(); ++i) {
        for_each_task(plan_.of(rank)[i], [&](const task& what) {
          if (is_computation(what.kind)) all.push_back({what, rank, i});
        });
      }
    }
    std::sort(all.begin(), all.end());
    std::size_t next = 0;
    for (int stage = 0; stage < plan_.stages() && !failed(); ++stage) {
      for (int m = 0; m < plan_.microbatches && !failed(); ++m) {
        const std::size_t begin = next;
        while (next < all.size() && all[next].what.stage == stage && all[next].what.microbatch == m) ++next;
        check_one(stage, m, all.data() + begin, next - begin);
      }
    }
  }

  /// Checks all computations of one stage for one microbatch.
  constexpr void check_one(int stage, int microbatch, const located* done, std::size_t count) {
    const located* of[task_kinds] = {};
    for (std::size_t i = 0; i < count; ++i) {
      const located*& known = of[static_cast<std::size_t>(done[i].what.kind)];
      if (known != nullptr) fail(schedule_violation::done_twice, step_at(done[i]), step_at(*known));
      known = &done[i];
    }
    const located* forward = of[static_cast<std::size_t>(task_kind::forward)];
    const located* whole = of[static_cast<std::size_t>(task_kind::backward)];
    const located* input = of[static_cast<std::size_t>(task_kind::input_gradient)];
    const located* weight = of[static_cast<std::size_t>(task_kind::weight_gradient)];
    const located* again = of[static_cast<std::size_t>(task_kind::recompute)];
    const auto is_missing = [&](task_kind what) {
      if (failed()) return;
      found_.what = schedule_violation::missing;
      found_.missing = {what, stage, microbatch};
    };
    if (forward == nullptr) is_missing(task_kind::forward);
    if (whole == nullptr && input == nullptr)
      is_missing(weight == nullptr ? task_kind::backward : task_kind::input_gradient);
    if (input != nullptr && whole == nullptr && weight == nullptr) is_missing(task_kind::weight_gradient);
    if (failed()) return;
    if (whole != nullptr && input != nullptr)
      fail(schedule_violation::two_kinds_of_backward, step_at(*input), step_at(*whole));
    if (whole != nullptr && weight != nullptr)
      fail(schedule_violation::two_kinds_of_backward, step_at(*weight), step_at(*whole));
    const located& back = whole != nullptr ? *whole : *input;
    if (back.index <= forward->index) fail(schedule_violation::before_its_input, step_at(back), step_at(*forward));
    if (again != nullptr && again->index <= forward->index) {
      fail(schedule_violation::before_its_input, step_at(*again), step_at(*forward));
    }
    if (again != nullptr && back.index <= again->index) {
      fail(schedule_violation::before_its_input, step_at(back), step_at(*again));
    }
    if (weight != nullptr && weight->index <= back.index) {
      fail(schedule_violation::before_its_input, step_at(*weight), step_at(back));
    }
  }

  // ---- tasks for a stage's parameters, once or several times per row ----

  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

  /// Positions in a row of the tasks for one stage's parameters that were found so far.
  struct parameter_tasks {
    std::size_t gathered = nowhere;  ///< the last UNSHARD
    std::size_t dropped = nowhere;   ///< the last RESHARD
    std::size_t reduced = nowhere;
    std::size_t waited = nowhere;
    std::size_t updated = nowhere;
    bool is_sharded = false;   ///< the row gathers the stage's parameters somewhere
    bool is_gathered = false;  ///< the parameters are gathered now
  };

  constexpr void check_parameter_tasks() {
    bool reduces = false, updates = false, shards = false;
    for (const row& actions : plan_.rows) {
      for (const schedule_action& each : actions) {
        reduces = reduces || each.first.kind == task_kind::reduce_gradient ||
                  each.first.kind == task_kind::wait_reduce_gradient;
        updates = updates || each.first.kind == task_kind::update;
        shards = shards || each.first.kind == task_kind::unshard || each.first.kind == task_kind::reshard;
      }
    }
    if (!reduces && !updates && !shards) return;
    for (int rank = 0; rank < plan_.ranks() && !failed(); ++rank) check_parameter_tasks_of(rank, reduces, updates);
  }

  constexpr void check_parameter_tasks_of(int rank, bool reduces, bool updates) {
    std::vector<parameter_tasks> stages(static_cast<std::size_t>(plan_.stages()));
    const row& actions = plan_.of(rank);
    for (const schedule_action& each : actions) {
      if (each.first.kind != task_kind::unshard && each.first.kind != task_kind::reshard) continue;
      stages[static_cast<std::size_t>(each.first.stage)].is_sharded = true;
    }
    for (std::size_t i = 0; i < actions.size(); ++i) {
      for_each_task(actions[i], [&](const task& what) {
        note_parameter_task(what, step_at(rank, i), stages[static_cast<std::size_t>(what.stage)]);
      });
    }
    for (int stage = 0; stage < plan_.stages() && !failed(); ++stage) {
      if (!plan_.placement.holds(rank, stage)) continue;
      check_parameter_tasks_complete(rank, stage, stages[static_cast<std::size_t>(stage)], reduces, updates);
    }
  }

  constexpr void note_parameter_task(const task& what, const schedule_step& at, parameter_tasks& of) {
    switch (what.kind) {
      case task_kind::unshard:
        if (of.is_gathered) fail(schedule_violation::done_twice, at, known(at, of.gathered));
        of.is_gathered = true;
        of.gathered = at.index;
        break;
      case task_kind::reshard:
        if (!of.is_gathered) fail(schedule_violation::not_gathered, at, known(at, of.dropped));
        of.is_gathered = false;
        of.dropped = at.index;
        break;
      case task_kind::reduce_gradient:
        note_once(at, of.reduced, of.updated);
        if (of.waited != nowhere) fail(schedule_violation::before_its_input, known(at, of.waited), at);
        break;
      case task_kind::wait_reduce_gradient: note_once(at, of.waited, of.updated); break;
      case task_kind::update: note_once(at, of.updated, nowhere); break;
      default:
        if (!is_computation(what.kind)) break;
        if (of.is_sharded && !of.is_gathered) fail(schedule_violation::not_gathered, at, known(at, of.dropped));
        if (of.reduced != nowhere) fail(schedule_violation::before_its_input, known(at, of.reduced), at);
        if (of.updated != nowhere) fail(schedule_violation::before_its_input, known(at, of.updated), at);
        break;
    }
  }

  /// Checks that a task occurs only once, and not after `last`.
  constexpr void note_once(const schedule_step& at, std::size_t& before, std::size_t last) {
    if (before != nowhere) fail(schedule_violation::done_twice, at, known(at, before));
    if (last != nowhere) fail(schedule_violation::before_its_input, known(at, last), at);
    before = at.index;
  }

  /// Returns step `before` of the row of `at`, or an empty step if `before` is `nowhere`.
  constexpr schedule_step known(const schedule_step& at, std::size_t before) const {
    return before == nowhere ? schedule_step{} : step_at(at.rank, before);
  }

  /// Checks at the end of a row: kinds of tasks that occur for one stage occur for all, and no stage is still gathered.
  constexpr void check_parameter_tasks_complete(int rank, int stage, const parameter_tasks& of, bool reduces,
                                                bool updates) {
    const auto needs = [&](task_kind what, std::size_t found) {
      if (failed() || found != nowhere) return;
      found_.what = schedule_violation::missing;
      found_.missing = {what, stage, -1};
      found_.rank_without_task = rank;
    };
    if (reduces) {
      needs(task_kind::reduce_gradient, of.reduced);
      needs(task_kind::wait_reduce_gradient, of.waited);
    }
    if (updates) needs(task_kind::update, of.updated);
    if (failed()) return;
    if (of.is_gathered) fail(schedule_violation::not_dropped, step_at(rank, of.gathered));
    if (updates && !reduces && plan_.placement.has_two_directions() && plan_.ranks() > 1) {
      fail(schedule_violation::copies_apart, step_at(rank, of.updated));
    }
  }

  // ---- no cyclic wait ----

  constexpr void check_no_cyclic_wait() {
    // Checks only the computations; prove_messages checks the messages.
    const timing result = schedule_simulator(plan_, costs{}, false).run([](const timed_schedule_action&) {});
    if (result.complete) return;
    std::vector<char> seen(static_cast<std::size_t>(plan_.ranks()), false);
    int rank = 0;
    while (result.ranks[static_cast<std::size_t>(rank)].done == plan_.of(rank).size()) ++rank;
    // Follow the waits from rank to rank until a rank occurs twice.
    const auto blocked = [&](int r) { return step_at(r, result.ranks[static_cast<std::size_t>(r)].done); };
    while (true) {
      seen[static_cast<std::size_t>(rank)] = true;
      const schedule_step awaited = awaited_by(blocked(rank).what, result);
      if (awaited.rank == rank) return fail(schedule_violation::before_its_input, blocked(rank), awaited);
      if (seen[static_cast<std::size_t>(awaited.rank)]) {
        return fail(schedule_violation::deadlock, blocked(rank), blocked(awaited.rank));
      }
      rank = awaited.rank;
    }
  }

  /// Returns the step that `what` needs and that is not done yet.
  constexpr schedule_step awaited_by(const schedule_action& what, const timing& result) const {
    schedule_step found;
    for_each_task(what, [&](const task& each) {
      const auto look_for = [&](int stage, bool forward) {
        if (stage < 0 || stage >= plan_.stages()) return;
        const int owner = plan_.placement.rank_of(stage, each.microbatch);
        for (std::size_t i = result.ranks[static_cast<std::size_t>(owner)].done; i < plan_.of(owner).size(); ++i) {
          for_each_task(plan_.of(owner)[i], [&](const task& other) {
            const bool is_right = forward
                                      ? other.kind == task_kind::forward
                                      : other.kind == task_kind::input_gradient || other.kind == task_kind::backward;
            if (is_right && other.stage == stage && other.microbatch == each.microbatch) found = step_at(owner, i);
          });
        }
      };
      if (each.kind == task_kind::forward) look_for(each.stage - 1, true);
      if (each.kind == task_kind::input_gradient || each.kind == task_kind::backward) look_for(each.stage + 1, false);
    });
    return found;
  }

  const schedule& plan_;
  schedule_proof found_;
};

}  // namespace detail

/// Proves that `plan` is complete and comes to an end on every transport that holds a message until it is received.
/// Complete: each stage does forward, input gradient and weight gradient of each microbatch exactly once, in this
/// order, on the rank that holds the stage; it recomputes at most once, between the first two.
///
/// Rules for the tasks on a stage's parameters, if the schedule lists them:
/// - REDUCE_GRAD once, after all computations of the stage; WAIT_REDUCE_GRAD once after that, because nothing else
///   shows UPDATE, or the code after the step, that the sum is complete. Both for all stages or for none.
/// - UPDATE once, after these and after all computations of the stage; for all stages or for none. If two ranks have
///   copies of a stage (`two_directions`), each has the gradients of some microbatches, and needs REDUCE_GRAD before.
/// - UNSHARD and RESHARD alternate; a row that has any of them for a stage uses the stage only between the two.
///
/// Cost: n log n for n actions.
constexpr schedule_proof prove(const schedule& plan) { return detail::schedule_prover(plan).prove(); }

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
