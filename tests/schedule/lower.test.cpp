// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The lowering passes: the result of each pass for a small schedule, and the proof that fully lowered schedules end
// with any capacity of the transport.
#include "schedule/refusal.hpp"
#include "schedule/rows.hpp"
#include "schedule/schedules.hpp"

#include <hocket/schedule/lower/lower.hpp>
#include <hocket/schedule/prove.hpp>
#include <hocket/schedule/prove_messages.hpp>
#include <hocket/schedule/schedule_trace.hpp>
#include <hocket/schedule/text.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

using namespace pipeline_test;
using namespace hocket::plan::pipeline;

TEST_CASE("each lowering pass gives the expected rows") {
  const schedule plan = schedules::one_forward_one_backward(2, 2);
  CHECK(rows(plan) == "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");

  const schedule with_messages = add_messages(plan);
  CHECK(rows(with_messages) ==
        "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
        "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n");
  CHECK(rows(wait_for_sends(with_messages)) ==
        "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0WAIT_SEND_F0,0WAIT_SEND_F1\n"
        "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1WAIT_SEND_B0,1WAIT_SEND_B1\n");
  CHECK(rows(wait_for_sends(with_messages, 1)) ==
        "0F0,0SEND_F0,0WAIT_SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0WAIT_SEND_F1\n"
        "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1WAIT_SEND_B0,1B1,1SEND_B1,1WAIT_SEND_B1\n");
  pipeline_test::refuses([&] { wait_for_sends(with_messages, 0); }, "at least one buffer for what a stage sends");
  CHECK(rows(defer_receives(with_messages)) ==
        "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
        "1RECV_F0,1F0,1B0,1RECV_F1,1SEND_B0,1F1,1B1,1SEND_B1\n");

  CHECK(rows(reduce_gradients(plan)) ==
        "0F0,0F1,0B0,0B1,0REDUCE_GRAD,0WAIT_REDUCE_GRAD\n1F0,1B0,1F1,1B1,1REDUCE_GRAD,1WAIT_REDUCE_GRAD\n");
  CHECK(rows(update_parameters(plan)) == "0F0,0F1,0B0,0B1,0UPDATE\n1F0,1B0,1F1,1B1,1UPDATE\n");
  CHECK(rows(update_parameters(reduce_gradients(schedules::breadth_first(1, 1, 2)))) ==
        "0F0,1F0,1B0,1REDUCE_GRAD,1WAIT_REDUCE_GRAD,1UPDATE,0B0,0REDUCE_GRAD,0WAIT_REDUCE_GRAD,0UPDATE\n");
  CHECK(rows(shard_parameters(plan)) == "0UNSHARD,0F0,0F1,0B0,0B1,0RESHARD\n1UNSHARD,1F0,1B0,1F1,1B1,1RESHARD\n");
  CHECK(rows(shard_parameters(schedules::breadth_first(1, 1, 3), 2)) ==
        "0UNSHARD,1UNSHARD,0F0,0RESHARD,2UNSHARD,1F0,2F0,2B0,2RESHARD,0UNSHARD,1B0,1RESHARD,0B0,0RESHARD\n");
  CHECK(rows(merge_backward(schedules::zero_bubble(2, 2))) == "0F0,0F1,0B0,0B1\n1F0,1I0,1F1,1I1,1W0,1W1\n");
}

TEST_CASE("add_messages adds no message between stages of one rank") {
  const schedule plan = add_messages(schedules::zero_bubble_v(2, 2));
  CHECK(rows(plan).find("1SEND_F") == std::string::npos);  // stages 1 and 2 are on rank 1
  CHECK(rows(plan).find("2SEND_B") == std::string::npos);
  CHECK(rows(add_messages(schedules::interleaved(1, 4, 3))) == rows(schedules::interleaved(1, 4, 3)));
}

TEST_CASE("every lowered schedule is complete and ends with rendezvous and with any capacity") {
  for_every_schedule(
      [&](const schedule& plan, const sizes& s) {
        const auto check = [&](const schedule& lowered, const char* what) {
          const auto report = [&](const schedule_proof& found) {
            if (!found) {
              FAIL_CHECK(plan.name() << ", P " << s.ranks << ", M " << s.microbatches << ", " << what << ": "
                                     << found.message());
            }
          };
          report(prove(lowered));
          for (const int capacity : {0, 1, 2, unbounded}) report(prove_messages(lowered, capacity));
          if (run_clock(lowered).makespan != run_clock(plan).makespan) FAIL_CHECK(what << " changes the makespan");
        };
        check(lower(plan), "lowered by default");
        check(lower(plan, {.defer_receives = true}), "with deferred receives");
        check(lower(plan, {.shard_parameters = true, .reduce_gradients = true, .update_parameters = true}),
              "with sharded parameters");
        check(lower(plan, {.reduce_gradients = true, .defer_receives = true}), "with reductions and late receives");
        for (int rank = 0; rank < s.ranks; ++rank) {
          if (peak_activations(lower(plan), rank) != peak_activations(plan, rank)) FAIL_CHECK("the peak changes");
        }
      },
      6, 14);
}

TEST_CASE("the proof of messages names the fault of an invalid table") {
  const schedule good = lower(schedules::one_forward_one_backward(3, 4));
  const auto found = [](const schedule& plan) { return prove_messages(plan, unbounded).what; };
  REQUIRE(found(good) == schedule_violation::none);
  schedule plan = good;
  plan.rows[1][0].first.stage = 3;
  CHECK(found(plan) == schedule_violation::no_such_stage);
  plan = good;
  plan.rows[2][1].first.microbatch = 4;
  CHECK(found(plan) == schedule_violation::no_such_microbatch);
  plan.rows[2][1].first.microbatch = -1;
  CHECK(found(plan) == schedule_violation::no_such_microbatch);
  plan = good;
  std::swap(plan.rows[0], plan.rows[2]);
  CHECK(found(plan) == schedule_violation::wrong_rank);
  plan = good;
  plan.rows.pop_back();
  CHECK(found(plan) == schedule_violation::wrong_number_of_rows);
}

TEST_CASE("every schedule, lowered by default, ends with rendezvous and with any capacity up to the largest sizes") {
  for_every_schedule([&](const schedule& plan, const sizes& s) {
    if (s.ranks <= 6 && s.microbatches <= 14) return;  // covered above, with all passes
    const schedule lowered = lower(plan);
    const auto report = [&](const schedule_proof& found) {
      if (found) return;
      FAIL_CHECK(plan.name() << ", P " << s.ranks << ", M " << s.microbatches << ", v " << s.stages_per_rank << ": "
                             << found.message());
    };
    report(prove(lowered));
    for (const int capacity : {0, 1, unbounded}) report(prove_messages(lowered, capacity));
  });
}

TEST_CASE("a stage must be updated once, after all its gradients") {
  const schedule plan = update_parameters(reduce_gradients(schedules::zero_bubble(2, 2)));
  CHECK(prove(plan));
  for (int rank = 0; rank < 2; ++rank) {
    for (std::size_t i = 0; i + 1 < plan.of(rank).size(); ++i) {
      schedule early = plan;
      auto& actions = early.of(rank);
      std::rotate(actions.begin() + static_cast<std::ptrdiff_t>(i), actions.end() - 1, actions.end());
      INFO(print(early));
      CHECK_FALSE(prove(early));
    }
    schedule twice = plan;
    twice.of(rank).push_back(twice.of(rank).back());
    CHECK_FALSE(prove(twice));
  }
}

TEST_CASE("two copies of a stage can be updated only if their gradients are reduced") {
  const schedule plan = schedules::dual_pipe(2, 4);
  pipeline_test::refuses([&] { lower(plan, {.update_parameters = true}); },
                         "update_parameters: in two directions each stage has two copies");
  CHECK(prove(lower(plan, {.reduce_gradients = true, .update_parameters = true})));
  CHECK(prove(lower(plan, {.reduce_gradients = true})));
  schedule apart = plan;  // the same updates, written by hand
  for (int rank = 0; rank < 2; ++rank) {
    for (int stage = 0; stage < 2; ++stage) apart.of(rank).push_back({{task_kind::update, stage, -1}, {}});
  }
  CHECK(prove(apart).what == schedule_violation::copies_apart);
  CHECK_THAT(prove(apart).message(), Catch::Contains("two ranks have copies of this stage"));
}

// So both reach the same step at the same time, and no WAIT_REDUCE_GRAD delays the REDUCE_GRAD of the other rank.
TEST_CASE("two ranks with copies of a stage have equal rows, and reduce its gradients at the same step") {
  for (int ranks = 2; ranks <= 8; ranks += 2) {
    for (int microbatches = 2 * ranks; microbatches <= 32; microbatches += 2) {
      const schedule plan = reduce_gradients(schedules::dual_pipe(ranks, microbatches));
      for (int rank = 0; rank < ranks; ++rank) {
        row turned = plan.of(ranks - 1 - rank);
        const auto turn = [&](task& what) {
          if (has_microbatch(what.kind)) what.microbatch = (what.microbatch + microbatches / 2) % microbatches;
        };
        for (schedule_action& each : turned) {
          turn(each.first);
          if (each.is_pair()) turn(each.second);
        }
        if (!(turned == plan.of(rank))) FAIL_CHECK(ranks << " ranks, " << microbatches << " microbatches");
      }
    }
  }
}

TEST_CASE("lower reports each pass to the observer, in order") {
  std::vector<std::string> passes;
  const schedule plan = schedules::zero_bubble(2, 4);
  schedule last = plan;
  const schedule made = lower(plan, {true, true, true, true, true}, [&](const char* pass, const schedule& now) {
    passes.emplace_back(pass);
    last = now;
  });
  CHECK(passes == std::vector<std::string>{"merge_backward", "shard_parameters", "reduce_gradients",
                                           "update_parameters", "add_messages", "wait_for_sends", "defer_receives"});
  CHECK(made == last);
}

TEST_CASE("the proofs reject a damaged lowered schedule") {
  for (const schedule& plan : {schedules::one_forward_one_backward(4, 8), schedules::interleaved(4, 8, 2),
                               schedules::zero_bubble_v(4, 8), schedules::dual_pipe_v(4, 8)}) {
    const schedule lowered = lower(plan);
    CAPTURE(plan.name());
    for (int rank = 0; rank < plan.ranks(); ++rank) {
      for (std::size_t i = 0; i < lowered.of(rank).size(); ++i) {
        const task_kind what = lowered.of(rank)[i].first.kind;
        const auto at = static_cast<std::ptrdiff_t>(i);
        CAPTURE(rank, i, to_string(lowered.of(rank)[i]));
        const auto rejected = [&](const schedule& damaged) {
          return !prove(damaged) || !prove_messages(damaged, unbounded) || !prove_messages(damaged, 0);
        };
        if (is_send(what) || is_receive(what)) {
          schedule dropped = lowered;
          dropped.of(rank).erase(dropped.of(rank).begin() + at);
          if (!rejected(dropped)) FAIL_CHECK("dropped");
          schedule doubled = lowered;
          doubled.of(rank).insert(doubled.of(rank).begin() + at, lowered.of(rank)[i]);
          if (!rejected(doubled)) FAIL_CHECK("doubled");
          schedule other = lowered;
          other.of(rank)[i].first.microbatch = (other.of(rank)[i].first.microbatch + 1) % plan.microbatches;
          if (!rejected(other)) FAIL_CHECK("other microbatch");
        }
        if (what == task_kind::wait_send_forward || what == task_kind::wait_send_backward) {
          schedule dropped = lowered;
          dropped.of(rank).erase(dropped.of(rank).begin() + at);
          for (const int capacity : {0, 1, unbounded}) {
            const schedule_proof found = prove_messages(dropped, capacity);
            if (found.what != schedule_violation::overwritten_while_read) FAIL_CHECK("dropped: " << found.message());
          }
          schedule early = lowered;  // waits before its send
          early.of(rank).erase(early.of(rank).begin() + at);
          early.of(rank).insert(early.of(rank).begin(), lowered.of(rank)[i]);
          if (!rejected(early)) FAIL_CHECK("before its send");
        }
        if (is_receive(what)) {  // received after its use
          schedule late = lowered;
          const schedule_action moved = late.of(rank)[i];
          late.of(rank).erase(late.of(rank).begin() + at);
          late.of(rank).push_back(moved);
          if (!rejected(late)) FAIL_CHECK("after its use");
        }
        if (is_send(what)) {  // sent before the result is computed
          schedule early = lowered;
          std::swap(early.of(rank)[i], early.of(rank)[i - 1]);
          const bool was_producer = is_computation(lowered.of(rank)[i - 1].first.kind);
          if (was_producer && !rejected(early)) FAIL_CHECK("before what it sends");
        }
      }
    }
  }
}

TEST_CASE("two ranks that both send first need a transport that buffers a message") {
  const schedule plan = parse(
      "# placement: two_directions\n# microbatches: 2\n"
      "0F0,0SEND_F0,1RECV_F1,1F1,1B1,1SEND_B1,0RECV_B0,0B0,0WAIT_SEND_F0,1WAIT_SEND_B1\n"
      "0F1,0SEND_F1,1RECV_F0,1F0,1B0,1SEND_B0,0RECV_B1,0B1,0WAIT_SEND_F1,1WAIT_SEND_B0\n");
  CHECK(prove(plan));
  CHECK(prove_messages(plan, 1));
  CHECK(
      prove_messages(plan, 0).message() ==
      "each of two ranks waits for what the other does only after its own wait: rank 1, step 1 (0SEND_F1), and rank 0, "
      "step 1 (0SEND_F0)");
}

TEST_CASE("the proof of messages names both steps if a buffer is overwritten before its send was awaited") {
  const schedule plan = parse(
      "0F0,0SEND_F0,0RECV_B0,0B0\n"
      "1RECV_F0,1F0,1B0,1SEND_B0,1WAIT_SEND_B0\n");
  CHECK(prove(plan));
  for (const int capacity : {0, 1, unbounded}) {
    CHECK(prove_messages(plan, capacity).message() ==
          "a buffer must not be overwritten while it is read, but no action waits until this has been sent: "
          "rank 0, step 1 (0SEND_F0); it is overwritten, in the next run of the row, by rank 0, step 0 (0F0)");
  }
  CHECK(prove_messages(wait_for_sends(add_messages(schedules::gpipe(2, 1))), 0));
}

TEST_CASE("two ranks that both wait for a send before they receive deadlock with every capacity") {
  const char* const others = ",1RECV_F1,1F1,1B1,1SEND_B1,1WAIT_SEND_B1,0RECV_B0,0B0\n";
  const schedule plan =
      parse(std::string("# placement: two_directions\n# microbatches: 2\n") + "0F0,0SEND_F0,0WAIT_SEND_F0" + others +
            "0F1,0SEND_F1,0WAIT_SEND_F1,1RECV_F0,1F0,1B0,1SEND_B0,1WAIT_SEND_B0,0RECV_B1,0B1\n");
  CHECK(prove(plan));
  for (const int capacity : {1, 2, unbounded}) {
    CHECK(prove_messages(plan, capacity).message() ==
          "each of two ranks waits for what the other does only after its own wait: "
          "rank 1, step 2 (0WAIT_SEND_F1), and rank 0, step 2 (0WAIT_SEND_F0)");
  }
  CHECK(prove_messages(plan, 0).what == schedule_violation::deadlock);
}

TEST_CASE("both ranks may start a receive first only with unbounded capacity") {
  const schedule plan = parse(
      "# placement: two_directions\n# microbatches: 2\n"
      "1RECV_F1,0F0,0SEND_F0,1F1,1B1,0RECV_B0,1SEND_B1,0B0,0WAIT_SEND_F0,1WAIT_SEND_B1\n"
      "1RECV_F0,0F1,0SEND_F1,1F0,1B0,0RECV_B1,1SEND_B0,0B1,0WAIT_SEND_F1,1WAIT_SEND_B0\n");
  CHECK(prove(plan));
  CHECK(prove_messages(plan, unbounded));
  for (const int capacity : {0, 1, 2}) CHECK(prove_messages(plan, capacity).what == schedule_violation::deadlock);
  schedule circle = plan;  // each rank needs a result that the other computes only later
  for (row& actions : circle.rows) std::swap(actions[1], actions[3]);
  CHECK_FALSE(prove(circle));
}

TEST_CASE("receives are deferred to the action that needs them, or to the next message") {
  for_every_schedule(
      [&](const schedule& plan, const sizes&) {
        const schedule early = lower(plan);
        const schedule deferred = lower(plan, {.defer_receives = true});
        CAPTURE(plan.name(), plan.ranks(), plan.microbatches);
        for (int rank = 0; rank < plan.ranks(); ++rank) {
          row messages[2];
          for (const schedule* each : {&early, &deferred}) {
            for (const schedule_action& what : each->of(rank)) {
              const bool is_message = is_send(what.first.kind) || is_receive(what.first.kind);
              if (is_message) messages[each == &deferred].push_back(what);
            }
          }
          if (messages[0] != messages[1]) FAIL_CHECK("rank " << rank << ": the order of messages changes");
          const row& actions = deferred.of(rank);
          for (std::size_t i = 0; i + 1 < actions.size(); ++i) {
            const schedule_action& next = actions[i + 1];
            const task& receive = actions[i].first;
            if (!is_receive(receive.kind) || is_send(next.first.kind) || is_receive(next.first.kind)) continue;
            bool needed = false;
            for_each_task(next, [&](const task& what) {
              needed = needed || (what.stage == receive.stage && what.microbatch == receive.microbatch);
            });
            if (!needed) FAIL_CHECK("rank " << rank << ": " << to_string(actions[i]) << " could be later");
          }
        }
      },
      6, 14);
}

TEST_CASE("the sends of a stage in flight never exceed the requested number of buffers") {
  for_every_schedule(
      [&](const schedule& plan, const sizes&) {
        for (const int buffers : {1, 2, 3}) {
          const schedule lowered = wait_for_sends(add_messages(plan), buffers);
          CAPTURE(plan.name(), plan.microbatches, buffers);
          for (int rank = 0; rank < plan.ranks(); ++rank) {
            std::vector<int> written(2 * static_cast<std::size_t>(plan.stages()), 0);
            int most = 0;
            const auto entry = [&](const task& what, bool forward) -> int& {
              return written[2 * static_cast<std::size_t>(what.stage) + forward];
            };
            for (const schedule_action& each : lowered.of(rank)) {
              const task_kind what = each.first.kind;
              if (is_send(what)) most = std::max(most, ++entry(each.first, what == task_kind::send_forward));
              if (what == task_kind::wait_send_forward || what == task_kind::wait_send_backward) {
                --entry(each.first, what == task_kind::wait_send_forward);
              }
            }
            if (most > buffers) FAIL_CHECK("rank " << rank << " has " << most << " sends of a stage in flight");
            if (std::count(written.begin(), written.end(), 0) != static_cast<std::ptrdiff_t>(written.size())) {
              FAIL_CHECK("a send is never waited for");
            }
          }
          for (const int capacity : {0, 1, unbounded}) {
            const schedule_proof found = prove_messages(lowered, capacity);
            if (!found) FAIL_CHECK(found.message());
          }
        }
      },
      5, 12);
}
