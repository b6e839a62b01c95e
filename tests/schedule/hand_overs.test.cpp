// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cost of WAIT_SEND if a message stays with its sender until the receiver takes it, compared with a simulation that
// advances by one unit of time and checks all ranks in each unit.
#include "schedule/schedules.hpp"

#include <hocket/schedule/lower/lower.hpp>
#include <hocket/schedule/messages.hpp>
#include <hocket/schedule/schedule_trace.hpp>
#include <hocket/schedule/text.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

using namespace pipeline_test;
using namespace hocket::plan::pipeline;

namespace {

/// Makespan by stepwise simulation. All times must be whole numbers.
int stepwise_makespan(const schedule& plan, const costs& cost) {
  using message = std::tuple<task_kind, int, int>;  // by the task that sends it
  std::map<message, int> sent, asked;
  std::set<message> taken;
  std::set<std::tuple<task_kind, int, int>> made;
  std::vector<std::size_t> next(plan.rows.size(), 0);
  std::vector<int> busy_until(plan.rows.size(), 0);
  const auto arrived = [&](const message& what, int now) {
    if (sent.count(what) == 0 || asked.count(what) == 0) return false;
    const auto [how, stage, m] = what;
    const double hop = cost.hop(plan.placement.rank_of(stage, m), peer_of(plan, {how, stage, m}));
    return std::max(sent[what], asked[what]) + static_cast<int>(hop) <= now;
  };
  const auto is_here = [&](task_kind result, task_kind send, int stage, int m, int rank, int now) {
    if (stage < 0 || stage == plan.stages()) return true;
    if (plan.placement.rank_of(stage, m) != rank) return arrived({send, stage, m}, now);
    return made.count({result, stage, m}) > 0;
  };
  const auto can_begin = [&](const task& what, int rank, int now) {
    const int s = what.stage, m = what.microbatch;
    switch (what.kind) {
      case task_kind::forward: return is_here(task_kind::forward, task_kind::send_forward, s - 1, m, rank, now);
      case task_kind::input_gradient:
      case task_kind::backward: return is_here(task_kind::backward, task_kind::send_backward, s + 1, m, rank, now);
      case task_kind::wait_send_forward: return taken.count({task_kind::send_forward, s, m}) > 0;
      case task_kind::wait_send_backward: return taken.count({task_kind::send_backward, s, m}) > 0;
      default: return true;
    }
  };
  const auto end = [&](const task& what, int now) {
    const int s = what.stage, m = what.microbatch;
    if (what.kind == task_kind::forward) made.insert({task_kind::forward, s, m});
    if (what.kind == task_kind::input_gradient || what.kind == task_kind::backward)
      made.insert({task_kind::backward, s, m});
    if (is_send(what.kind)) sent[{what.kind, s, m}] = now;
    if (what.kind == task_kind::receive_forward) asked[{task_kind::send_forward, s - 1, m}] = now;
    if (what.kind == task_kind::receive_backward) asked[{task_kind::send_backward, s + 1, m}] = now;
  };
  for (int now = 0; now < 100000; ++now) {
    for (bool moved = true; moved;) {
      moved = false;
      bool over = true;
      for (int rank = 0; rank < plan.ranks(); ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        over = over && next[r] == plan.rows[r].size();
        if (busy_until[r] > now) continue;
        for (const auto& [what, time] : sent) {  // between two actions, a rank takes messages that arrived
          const auto [how, stage, m] = what;
          if (peer_of(plan, {how, stage, m}) != rank || taken.count(what) > 0 || !arrived(what, now)) continue;
          taken.insert(what);
          moved = true;
        }
        if (next[r] == plan.rows[r].size()) continue;
        const schedule_action& what = plan.rows[r][next[r]];
        bool possible = true;
        for_each_task(what, [&](const task& each) { possible = possible && can_begin(each, rank, now); });
        const int lasts = static_cast<int>(cost.of(what));
        if (!possible) continue;
        busy_until[r] = now + lasts;
        ++next[r];
        moved = true;
        // The results of an action are available at its end.
        if (lasts == 0) for_each_task(what, [&](const task& each) { end(each, now); });
      }
      if (over && !moved) return *std::max_element(busy_until.begin(), busy_until.end());
    }
    for (int rank = 0; rank < plan.ranks(); ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      if (busy_until[r] != now + 1) continue;
      for_each_task(plan.rows[r][next[r] - 1], [&](const task& each) { end(each, now + 1); });
    }
  }
  return -1;
}

/// Random hop times: one for all links, or one for each link.
link_times random_links(int ranks, std::mt19937& random) {
  const auto time = [&] { return static_cast<double>(random() % 3); };
  if (random() % 2 == 0) return time();
  const auto size = static_cast<std::size_t>(ranks);
  std::vector<std::vector<double>> times(size, std::vector<double>(size));
  for (std::vector<double>& from : times) std::generate(from.begin(), from.end(), time);
  return link_times(times);
}

}  // namespace

TEST_CASE("a sender without another buffer waits for a receiver that computes") {
  const schedule plan = parse(
      "# placement: loop\n"
      "0F0,0SEND_F0,0WAIT_SEND_F0,0F1,0SEND_F1,0WAIT_SEND_F1,0F2,0SEND_F2,0RECV_B0,0RECV_B1,0RECV_B2,"
      "0B0,0B1,0B2,0WAIT_SEND_F2\n"
      "1RECV_F0,1RECV_F1,1RECV_F2,1F0,1F1,1F2,1B0,1SEND_B0,1B1,1SEND_B1,1B2,1SEND_B2,"
      "1WAIT_SEND_B0,1WAIT_SEND_B1,1WAIT_SEND_B2\n");
  costs cost(std::vector<stage_cost>{{1, 1, 1}, {4, 1, 1}});
  CHECK(run_clock(plan, cost).makespan == 21);
  cost.sends_wait = true;
  // Rank 1 takes the second message at 5, when its first forward pass has ended, and the third at 9.
  timing found = run_clock(plan, cost);
  CHECK(found.complete);
  CHECK(found.makespan == 21);
  CHECK(stepwise_makespan(plan, cost) == 21);
  std::vector<double> begins;
  trace(plan, cost, [&](const timed_schedule_action& each) {
    if (each.rank == 0 && each.what.first.kind == task_kind::forward) begins.push_back(each.begin);
  });
  CHECK(begins == std::vector<double>{0, 1, 5});
}

TEST_CASE("run_clock computes the same cost of WAIT_SEND as the stepwise simulation") {
  std::mt19937 random(7);
  int compared = 0, later = 0;
  for_every_schedule(
      [&](const schedule& plan, const sizes& s) {
        if (s.stages_per_rank > 2 || (s.microbatches != 3 && s.microbatches != 4 && s.microbatches != 8)) return;
        for (const int buffers : {1, 2}) {
          std::vector<stage_cost> times;
          const auto time = [&] { return static_cast<double>(1 + random() % 4); };
          for (int stage = 0; stage < plan.stages(); ++stage) times.push_back({time(), time(), time()});
          costs cost(times, random_links(plan.ranks(), random));
          const schedule lowered = wait_for_sends(add_messages(plan), buffers);
          const timing at_once = run_clock(lowered, cost);
          cost.sends_wait = true;
          const timing found = run_clock(lowered, cost);
          CAPTURE(plan.name(), s.ranks, s.microbatches, buffers);
          if (!found.complete) FAIL_CHECK("the schedule does not end");
          const int expected = stepwise_makespan(lowered, cost);
          if (found.makespan != expected) FAIL_CHECK(found.makespan << " instead of " << expected);
          if (found.makespan < at_once.makespan) FAIL_CHECK("shorter than without waits");
          later += found.makespan > at_once.makespan;
          ++compared;
        }
      },
      5, 8);
  CHECK(compared > 200);
  CHECK(later > 10);
  // Without messages, no rank waits.
  costs cost;
  cost.sends_wait = true;
  CHECK(run_clock(one_forward_one_backward(8, 32), cost).makespan == 3 * 39);
}

TEST_CASE("waits for send buffers are frequent with one buffer for each stage, and rare with two") {
  std::mt19937 random(3);
  const auto time = [&] { return std::uniform_real_distribution<>(0.4, 1.6)(random); };
  for (const int buffers : {1, 2}) {
    double sum = 0, worst = 0;
    int compared = 0, longer = 0;
    for_every_schedule(
        [&](const schedule& plan, const sizes& s) {
          if (s.ranks < 2 || s.stages_per_rank > 2 || s.microbatches % 8 != 0) return;
          std::vector<stage_cost> times;
          for (int stage = 0; stage < plan.stages(); ++stage) times.push_back({time(), time(), time()});
          costs cost(times);
          const schedule lowered = wait_for_sends(add_messages(plan), buffers);
          const double at_once = run_clock(lowered, cost).makespan;
          cost.sends_wait = true;
          const double more = run_clock(lowered, cost).makespan / at_once - 1;
          longer += more > 0;
          sum += more;
          worst = std::max(worst, more);
          ++compared;
        },
        8, 32);
    WARN(buffers << " buffers: of " << compared << " schedules " << longer << " take longer, by "
                 << 100 * sum / compared << " % on average over all, " << 100 * worst << " % at most");
    CHECK(compared > 300);
    if (buffers == 1) CHECK(10 * longer > compared);
    if (buffers == 2) CHECK((10 * longer < compared && sum / compared < 0.005));
  }
}
