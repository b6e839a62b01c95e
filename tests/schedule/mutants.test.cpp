// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Mutation test of the proofs. Each step of a schedule is damaged in turn. The proof must reject the mutant, unless it
// is another valid schedule. This file implements the rules of the proof a second time, independently.
#include "schedule/schedules.hpp"

#include <hocket/schedule/lower/lower.hpp>
#include <hocket/schedule/prove.hpp>
#include <hocket/schedule/prove_messages.hpp>
#include <hocket/schedule/text.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <regex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace pipeline_test;
using namespace hocket::plan::pipeline;

namespace {

/// Runs the rows by repeatedly searching for an action whose inputs are available. Returns true if all actions were run
/// and each task of a training step was done exactly once, on the rank of its stage.
bool trains(const schedule& plan) {
  using done_work = std::tuple<task_kind, int, int>;
  std::multiset<done_work> done;
  std::vector<std::size_t> next(plan.rows.size(), 0);
  const auto has = [&](task_kind what, int stage, int m) { return done.count({what, stage, m}) > 0; };
  const auto output = [&](int stage, int m) { return stage < 0 || has(task_kind::forward, stage, m); };
  const auto gradient = [&](int stage, int m) {
    return stage == plan.stages() || has(task_kind::input_gradient, stage, m) || has(task_kind::backward, stage, m);
  };
  const auto can_run = [&](const task& what) {
    switch (what.kind) {
      case task_kind::forward: return output(what.stage - 1, what.microbatch);
      case task_kind::input_gradient:
      case task_kind::backward: return output(what.stage, what.microbatch) && gradient(what.stage + 1, what.microbatch);
      case task_kind::weight_gradient: return has(task_kind::input_gradient, what.stage, what.microbatch);
      default: return false;
    }
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < plan.rows.size(); ++rank) {
      if (next[rank] == plan.rows[rank].size()) continue;
      const schedule_action& what = plan.rows[rank][next[rank]];
      bool possible = true;
      for_each_task(what, [&](const task& each) {
        possible =
            possible && can_run(each) && plan.placement.rank_of(each.stage, each.microbatch) == static_cast<int>(rank);
      });
      if (!possible) continue;
      for_each_task(what, [&](const task& each) { done.insert({each.kind, each.stage, each.microbatch}); });
      ++next[rank];
      moved = true;
    }
  }
  std::size_t expected = 0;
  for (int stage = 0; stage < plan.stages(); ++stage) {
    for (int m = 0; m < plan.microbatches; ++m) {
      const bool whole = has(task_kind::backward, stage, m);
      const bool split = has(task_kind::input_gradient, stage, m) && has(task_kind::weight_gradient, stage, m);
      if (!has(task_kind::forward, stage, m) || whole == split) return false;
      expected += whole ? 2 : 3;
    }
  }
  return done.size() == expected;
}

struct mutant {
  std::string how;
  schedule plan;
};

std::vector<mutant> mutants_of(const schedule& plan) {
  std::vector<mutant> all;
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    for (std::size_t i = 0; i < plan.of(rank).size(); ++i) {
      const std::string at = " step " + std::to_string(i) + " of rank " + std::to_string(rank);
      const auto position = static_cast<std::ptrdiff_t>(i);
      const auto changed = [&](const char* how, auto change) {
        mutant made{how + at, plan};
        change(made.plan.of(rank));
        if (!(made.plan == plan)) all.push_back(std::move(made));
      };
      changed("dropped", [&](row& actions) { actions.erase(actions.begin() + position); });
      changed("doubled", [&](row& actions) {
        const schedule_action copy = actions[i];
        actions.insert(actions.begin() + position, copy);
      });
      if (i + 1 < plan.of(rank).size())
        changed("swapped", [&](row& actions) { std::swap(actions[i], actions[i + 1]); });
      changed("moved to the end", [&](row& actions) {
        const schedule_action moved = actions[i];
        actions.erase(actions.begin() + position);
        actions.push_back(moved);
      });
      changed("other microbatch", [&](row& actions) {
        actions[i].first.microbatch = (actions[i].first.microbatch + 1) % plan.microbatches;
      });
      changed("other stage",
              [&](row& actions) { actions[i].first.stage = (actions[i].first.stage + 1) % plan.stages(); });
      changed("no such microbatch", [&](row& actions) { actions[i].first.microbatch = plan.microbatches; });
      changed("other kind", [&](row& actions) {
        auto& what = actions[i].first.kind;
        what = what == task_kind::forward    ? task_kind::backward
               : what == task_kind::backward ? task_kind::input_gradient
                                             : task_kind::forward;
      });
      mutant moved{"other rank" + at, plan};
      row& from = moved.plan.of(rank);
      row& to = moved.plan.of((rank + 1) % plan.ranks());
      to.insert(to.begin() + static_cast<std::ptrdiff_t>(std::min(i, to.size())), from[i]);
      from.erase(from.begin() + position);
      all.push_back(std::move(moved));
    }
  }
  return all;
}

}  // namespace

TEST_CASE("the proof rejects exactly those mutants that do not train the model") {
  for (const schedule& plan :
       {schedules::one_forward_one_backward(4, 8), schedules::interleaved(4, 8, 2), schedules::zero_bubble_v(4, 8),
        schedules::dual_pipe_v(4, 8), schedules::dual_pipe(4, 8)}) {
    CAPTURE(plan.name());
    REQUIRE(trains(plan));
    int rejected = 0;
    int equivalent = 0;
    for (const mutant& each : mutants_of(plan)) {
      const schedule_proof found = prove(each.plan);
      if (found.ok != trains(each.plan)) FAIL_CHECK(each.how << ": " << found.message());
      ++(found.ok ? equivalent : rejected);
      if (!found.ok && found.what != schedule_violation::missing && found.where.rank < 0)
        FAIL_CHECK(each.how << ": no place named");
    }
    CHECK(rejected > 5 * equivalent);  // neighbours of different microbatches can often be swapped
    CHECK(equivalent > 0);
  }
}

namespace {

/// A second implementation of the proof of messages for sends and receives that are started and awaited later: runs the
/// rows, and transfers a message when its send and its receive were started. Returns true if all rows end and each send
/// was awaited, because a send reads its buffer until then.
bool runs_to_its_end(const schedule& plan) {
  std::set<std::tuple<task_kind, int, int>> done;
  std::set<std::tuple<task_kind, int, int>> sent, asked, waited;  // messages, by the task that sends them
  const auto came = [&](task_kind send, int stage, int m) {
    return sent.count({send, stage, m}) > 0 && asked.count({send, stage, m}) > 0;
  };
  const auto is_here = [&](task_kind made, task_kind send, int stage, int m, int rank) {
    if (stage < 0 || stage == plan.stages()) return true;
    if (plan.placement.rank_of(stage, m) != rank) return came(send, stage, m);
    return done.count({made, stage, m}) > 0 ||
           (made == task_kind::backward && done.count({task_kind::input_gradient, stage, m}) > 0);
  };
  const auto can_go = [&](const task& what, int rank) {
    const int stage = what.stage, m = what.microbatch;
    switch (what.kind) {
      case task_kind::forward: return is_here(task_kind::forward, task_kind::send_forward, stage - 1, m, rank);
      case task_kind::input_gradient:
      case task_kind::backward:
        return done.count({task_kind::forward, stage, m}) > 0 &&
               is_here(task_kind::backward, task_kind::send_backward, stage + 1, m, rank);
      case task_kind::weight_gradient: return done.count({task_kind::input_gradient, stage, m}) > 0;
      case task_kind::send_forward: return done.count({task_kind::forward, stage, m}) > 0;
      case task_kind::send_backward: return is_here(task_kind::backward, task_kind::send_backward, stage, m, rank);
      case task_kind::wait_send_forward: return came(task_kind::send_forward, stage, m);
      case task_kind::wait_send_backward: return came(task_kind::send_backward, stage, m);
      default: return true;
    }
  };
  const auto go = [&](const task& what) {
    const int stage = what.stage, m = what.microbatch;
    done.insert({what.kind, stage, m});
    if (what.kind == task_kind::send_forward || what.kind == task_kind::send_backward)
      sent.insert({what.kind, stage, m});
    if (what.kind == task_kind::receive_forward) asked.insert({task_kind::send_forward, stage - 1, m});
    if (what.kind == task_kind::receive_backward) asked.insert({task_kind::send_backward, stage + 1, m});
    if (what.kind == task_kind::wait_send_forward) waited.insert({task_kind::send_forward, stage, m});
    if (what.kind == task_kind::wait_send_backward) waited.insert({task_kind::send_backward, stage, m});
  };
  std::vector<std::size_t> next(plan.rows.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < plan.rows.size(); ++rank) {
      if (next[rank] == plan.rows[rank].size()) continue;
      const schedule_action& what = plan.rows[rank][next[rank]];
      bool possible = true;
      for_each_task(what, [&](const task& each) { possible = possible && can_go(each, static_cast<int>(rank)); });
      if (!possible) continue;
      for_each_task(what, go);
      ++next[rank];
      moved = true;
    }
  }
  for (std::size_t rank = 0; rank < plan.rows.size(); ++rank) {
    if (next[rank] != plan.rows[rank].size()) return false;
  }
  return waited == sent;
}

/// True if a failed proof of messages names both steps in conflict; one step is enough if an action is missing or
/// needless. An input that comes too late on the same rank must be a later step.
bool names_both_steps(const schedule& plan) {
  if (!prove(plan)) return true;
  for (const int capacity : {0, 1, unbounded}) {
    const schedule_proof found = prove_messages(plan, capacity);
    if (found) continue;
    const bool is_alone =
        found.what == schedule_violation::missing || found.what == schedule_violation::needless_message;
    if (found.where.rank < 0 || (found.other.rank < 0 && !is_alone)) return false;
    if (found.what == schedule_violation::before_its_input && found.other.index <= found.where.index) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("both proofs together reject exactly the invalid mutants of schedules with messages") {
  const auto fits = [](const schedule& plan) {  // each task occurs at most once, on the rank of its stage
    std::set<std::tuple<task_kind, int, int>> seen;
    for (int rank = 0; rank < plan.ranks(); ++rank) {
      for (const schedule_action& each : plan.of(rank)) {
        bool right = true;
        for_each_task(each, [&](const task& what) {
          right = right && what.stage >= 0 && what.stage < plan.stages() && what.microbatch >= 0 &&
                  what.microbatch < plan.microbatches && plan.placement.rank_of(what.stage, what.microbatch) == rank &&
                  seen.insert({what.kind, what.stage, what.microbatch}).second;
        });
        if (!right) return false;
      }
    }
    return true;
  };
  const auto without_messages = [](schedule plan) {
    for (row& actions : plan.rows) {
      std::erase_if(actions, [](const schedule_action& each) { return !is_computation(each.first.kind); });
    }
    return plan;
  };
  // Each message needs a peer on another rank, which runs its other end.
  const auto has_peers = [](const schedule& plan) {
    for (int rank = 0; rank < plan.ranks(); ++rank) {
      for (const schedule_action& each : plan.of(rank)) {
        if (!is_send(each.first.kind) && !is_receive(each.first.kind)) continue;
        const bool up = each.first.kind == task_kind::send_forward || each.first.kind == task_kind::receive_backward;
        const int other = each.first.stage + (up ? 1 : -1);
        if (other < 0 || other >= plan.stages()) return false;
        if (plan.placement.rank_of(other, each.first.microbatch) == rank) return false;
      }
    }
    return true;
  };
  for (const schedule& plan : {schedules::one_forward_one_backward(4, 8), schedules::interleaved(4, 8, 2),
                               schedules::zero_bubble_v(4, 8), schedules::dual_pipe_v(4, 8)}) {
    CAPTURE(plan.name());
    const schedule lowered = schedules::lower(plan);
    REQUIRE(runs_to_its_end(lowered));
    int rejected = 0;
    int equivalent = 0;
    for (const mutant& each : mutants_of(lowered)) {
      const bool accepted = prove(each.plan) && prove_messages(each.plan, unbounded);
      if (!names_both_steps(each.plan)) FAIL_CHECK(each.how << ": a step in conflict is not named");
      const bool right =
          fits(each.plan) && has_peers(each.plan) && trains(without_messages(each.plan)) && runs_to_its_end(each.plan);
      if (accepted != right) {
        const schedule_proof found = prove(each.plan);
        FAIL_CHECK(each.how << ": " << (found ? prove_messages(each.plan, unbounded) : found).message());
      }
      ++(accepted ? equivalent : rejected);
    }
    CHECK(rejected > 1000);
    CHECK(equivalent > 0);
  }
}

TEST_CASE("the proof of messages rejects exactly the schedules whose messages or waits were moved to a wrong place") {
  for (const schedule& plan :
       {schedules::one_forward_one_backward(3, 4), schedules::zero_bubble_v(2, 4), schedules::dual_pipe(2, 4)}) {
    const schedule lowered = schedules::lower(plan);
    CAPTURE(plan.name());
    REQUIRE(runs_to_its_end(lowered));
    int rejected = 0;
    int fine = 0;
    const auto compare = [&](const schedule& changed, int rank, std::size_t from, std::size_t to) {
      const schedule_proof found = prove_messages(changed, unbounded);
      ++(found ? fine : rejected);
      if (found.ok == runs_to_its_end(changed)) return;
      FAIL_CHECK(to_string(lowered.of(rank)[from])
                 << " of rank " << rank << " from " << from << " to " << to << ": " << found.message());
    };
    for (int rank = 0; rank < plan.ranks(); ++rank) {
      for (std::size_t from = 0; from < lowered.of(rank).size(); ++from) {
        const schedule_action moved = lowered.of(rank)[from];
        if (is_computation(moved.first.kind)) continue;
        schedule without = lowered;
        row& actions = without.of(rank);
        actions.erase(actions.begin() + static_cast<std::ptrdiff_t>(from));
        for (std::size_t to = 0; to <= actions.size(); ++to) {
          schedule changed = without;
          changed.of(rank).insert(changed.of(rank).begin() + static_cast<std::ptrdiff_t>(to), moved);
          compare(changed, rank, from, to);
        }
        if (!is_send(moved.first.kind)) compare(without, rank, from, from);
      }
    }
    CHECK(rejected > 100);
    CHECK(fine > 100);
  }
}

namespace {

/// The tasks of one row for one stage, one letter each; only letters in `listed` are included.
std::string done_for(int stage, const row& actions, const std::string& listed) {
  std::string word;
  for (const schedule_action& each : actions) {
    for_each_task(each, [&](const task& what) {
      if (what.stage != stage) return;
      const char letter = what.kind == task_kind::unshard                ? 'u'
                          : what.kind == task_kind::reshard              ? 'r'
                          : what.kind == task_kind::reduce_gradient      ? 'g'
                          : what.kind == task_kind::wait_reduce_gradient ? 'w'
                          : what.kind == task_kind::update               ? 'p'
                                                                         : 'c';
      if (listed.find(letter) != std::string::npos) word += letter;
    });
  }
  return word;
}

/// A second implementation of the proof's rules for a stage's parameters and gradients, by regular expressions.
bool takes_care(const schedule& plan) {
  std::set<std::string> ends;
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    for (int stage = 0; stage < plan.stages(); ++stage) {
      const std::string gathered = done_for(stage, plan.of(rank), "urc");
      const std::string gradients = done_for(stage, plan.of(rank), "cgwp");
      if (!plan.placement.holds(rank, stage)) {
        if (!gathered.empty() || !gradients.empty()) return false;
        continue;
      }
      if (!std::regex_match(gathered, std::regex("c*|(uc*r)*"))) return false;
      if (!std::regex_match(gradients, std::regex("c*(gw)?p?"))) return false;
      ends.insert(gradients.substr(gradients.find_last_of('c') + 1));
    }
  }
  return ends.size() == 1 && (!plan.placement.has_two_directions() || *ends.begin() != "p");
}

schedule computations_of(schedule plan) {
  for (row& actions : plan.rows) {
    std::erase_if(actions, [](const schedule_action& each) { return !is_computation(each.first.kind); });
  }
  return plan;
}

/// Mutants in which an action without microbatch is dropped, doubled, moved, or given to another stage or rank.
std::vector<mutant> mutants_of_care(const schedule& plan) {
  std::vector<mutant> all;
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    for (std::size_t i = 0; i < plan.of(rank).size(); ++i) {
      const schedule_action own = plan.of(rank)[i];
      if (has_microbatch(own.first.kind)) continue;
      const std::string at =
          ' ' + to_string(own.first) + ", step " + std::to_string(i) + " of rank " + std::to_string(rank);
      schedule without = plan;
      without.of(rank).erase(without.of(rank).begin() + static_cast<std::ptrdiff_t>(i));
      all.push_back({"dropped" + at, without});
      const auto put = [&](const char* how, const schedule& into, int where, std::size_t place,
                           const schedule_action& what) {
        mutant made{how + at + " to " + std::to_string(place), into};
        row& actions = made.plan.of(where);
        actions.insert(actions.begin() + static_cast<std::ptrdiff_t>(std::min(place, actions.size())), what);
        all.push_back(std::move(made));
      };
      for (std::size_t to = 0; to < plan.of(rank).size(); ++to) {
        put("moved", without, rank, to, own);
        put("doubled", plan, rank, to, own);
      }
      schedule_action other = own;
      other.first.stage = (own.first.stage + plan.ranks()) % plan.stages();
      put("of another stage", without, rank, i, other);
      put("on another rank", without, (rank + 1) % plan.ranks(), i, own);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("the proof rejects exactly the mutants with invalid gathering, reductions or updates") {
  for (const schedule& plan :
       {schedules::one_forward_one_backward(4, 8), schedules::interleaved(4, 8, 2), schedules::zero_bubble_v(4, 8),
        schedules::dual_pipe_v(4, 8), schedules::dual_pipe(4, 8)}) {
    CAPTURE(plan.name());
    const schedule whole = update_parameters(reduce_gradients(shard_parameters(plan, 1)));
    REQUIRE(takes_care(whole));
    REQUIRE(prove(whole));
    int rejected = 0;
    int equivalent = 0;
    for (const mutant& each : mutants_of_care(whole)) {
      const schedule_proof found = prove(each.plan);
      if (found.ok != (takes_care(each.plan) && trains(computations_of(each.plan))))
        FAIL_CHECK(each.how << ": " << found.message());
      ++(found.ok ? equivalent : rejected);
      if (!found.ok && found.where.rank < 0 && found.rank_without_task < 0) FAIL_CHECK(each.how << ": no place named");
    }
    CHECK(rejected > 10 * equivalent);
    CHECK(equivalent > 0);
  }
}

TEST_CASE("the proof names the place of an error in gathering, reductions or updates") {
  const auto said = [](const std::string& rows) { return prove(parse(rows)).message(); };
  CHECK(said("0F0,0B0,0REDUCE_GRAD,0WAIT_REDUCE_GRAD\n1F0,1B0,1REDUCE_GRAD\n") ==
        "work is missing: rank 1 lacks 1WAIT_REDUCE_GRAD");
  CHECK(said("0F0,0B0\n1F0,1B0,1UPDATE\n") == "work is missing: rank 0 lacks 0UPDATE");
  CHECK(said("0REDUCE_GRAD,0F0,0B0\n1F0,1REDUCE_GRAD,1B0,1REDUCE_GRAD\n") ==
        "the work comes before what it needs on the same rank: rank 0, step 0 (0REDUCE_GRAD); the other is rank 0, "
        "step 1 (0F0)");
  CHECK(said("0F0,0B0,0WAIT_REDUCE_GRAD,0REDUCE_GRAD\n") ==
        "the work comes before what it needs on the same rank: rank 0, step 2 (0WAIT_REDUCE_GRAD); the other is rank "
        "0, step 3 (0REDUCE_GRAD)");
  CHECK(said("0F0,0UNSHARD,0B0,0RESHARD\n") ==
        "a stage whose parameters are gathered needs UNSHARD before this, and RESHARD only after it: rank 0, step 0 "
        "(0F0)");
  CHECK(said("0UNSHARD,0F0,0B0\n") ==
        "what UNSHARD gathers must be dropped by RESHARD before the row ends: rank 0, step 0 (0UNSHARD)");
  CHECK(said("0UNSHARD,0F0,0RESHARD,0RESHARD,0B0\n").find("(0RESHARD); the other is rank 0, step 2 (0RESHARD)") !=
        std::string::npos);
}

TEST_CASE("a proof names the steps that are in conflict") {
  schedule plan = schedules::one_forward_one_backward(2, 2);
  SECTION("a cycle of waits") {
    std::swap(plan.of(0)[1], plan.of(0)[2]);  // 0F0,0B0,0F1,0B1
    std::swap(plan.of(1)[1], plan.of(1)[2]);  // 1F0,1F1,1B0,1B1
    const schedule_proof found = prove(plan);
    CHECK(found.what == schedule_violation::deadlock);
    CHECK(found.message() ==
          "each of two ranks waits for what the other does only after its own wait: "
          "rank 1, step 1 (1F1), and rank 0, step 1 (0B0)");
  }
  SECTION("wrong order on one rank") {
    schedule alone("alone", placement::given({0, 0}), 1);
    alone.of(0) = {forward(0, 0), backward(0, 0), forward(1, 0), backward(1, 0)};
    CHECK(prove(alone).message() ==
          "the work comes before what it needs on the same rank: rank 0, step 1 (0B0); the other is rank 0, step 3 "
          "(1B0)");
  }
  SECTION("the same task twice") {
    plan.of(1).push_back(forward(1, 0));
    CHECK(prove(plan).message() ==
          "the same work must be done only once: rank 1, step 4 (1F0); the other is rank 1, step 0 (1F0)");
  }
  SECTION("a missing task") {
    plan.of(1).pop_back();
    CHECK(prove(plan).message() == "work is missing: no rank does 1B1");
  }
  SECTION("another rank's stage") {
    plan.of(1).push_back(forward(0, 0));
    CHECK(prove(plan).message() == "the placement puts this stage on another rank: rank 1, step 4 (0F0)");
  }
  SECTION("an extra row") {
    plan.rows.emplace_back();
    CHECK(prove(plan).message() == "there must be a row for each rank of the placement");
  }
}

TEST_CASE("a proof of messages names both steps that are in conflict") {
  const auto said = [](const std::string& first_row, const std::string& second_row) {
    const schedule plan = parse(first_row + '\n' + second_row + '\n');
    REQUIRE(prove(plan));
    return prove_messages(plan, unbounded).message();
  };
  const std::string first = "0F0,0SEND_F0,0RECV_B0,0B0,0WAIT_SEND_F0";
  const std::string second = "1RECV_F0,1F0,1B0,1SEND_B0,1WAIT_SEND_B0";
  const std::string too_early = "the work comes before what it needs on the same rank: ";
  REQUIRE(said(first, second) == "the schedule is complete and comes to an end");
  CHECK(said(first, "1F0,1RECV_F0,1B0,1SEND_B0,1WAIT_SEND_B0") ==
        too_early + "rank 1, step 0 (1F0); the other is rank 1, step 1 (1RECV_F0)");
  CHECK(said("0F0,0SEND_F0,0B0,0RECV_B0,0WAIT_SEND_F0", second) ==
        too_early + "rank 0, step 2 (0B0); the other is rank 0, step 3 (0RECV_B0)");
  CHECK(said("0SEND_F0,0F0,0RECV_B0,0B0,0WAIT_SEND_F0", second) ==
        too_early + "rank 0, step 0 (0SEND_F0); the other is rank 0, step 1 (0F0)");
  CHECK(said(first, "1RECV_F0,1F0,1SEND_B0,1I0,1W0,1WAIT_SEND_B0") ==
        too_early + "rank 1, step 2 (1SEND_B0); the other is rank 1, step 3 (1I0)");
  CHECK(said("0F0,0WAIT_SEND_F0,0SEND_F0,0RECV_B0,0B0", second) ==
        too_early + "rank 0, step 1 (0WAIT_SEND_F0); the other is rank 0, step 2 (0SEND_F0)");
  CHECK(said("0F0,0SEND_F0,0SEND_F0,0RECV_B0,0B0,0WAIT_SEND_F0", second) ==
        "the same work must be done only once: rank 0, step 2 (0SEND_F0); the other is rank 0, step 1 (0SEND_F0)");
  CHECK(said(first, "1RECV_F0,1F0,1B0,1RECV_F0,1SEND_B0,1WAIT_SEND_B0") ==
        "the same work must be done only once: rank 1, step 3 (1RECV_F0); the other is rank 1, step 0 (1RECV_F0)");
}
