// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step takes as long as run_clock predicts: with stages that spend virtual time on simulated ranks, and with stages
// that keep a core busy on threads as ranks.
// unsanitized: it measures
#include "pipeline/model.hpp"
#include "pipeline/waiting_stage.hpp"
#include "schedule/schedules.hpp"
#include "support/catch.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/collective/barrier.hpp>
#include <hocket/pipeline/executor.hpp>
#include <hocket/schedule/greedy.hpp>
#include <hocket/schedule/lower/lower.hpp>
#include <hocket/schedule/text.hpp>
#include <hocket/sim.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/resource.h>

using namespace pipeline_test;
namespace pipeline = hocket::pipeline;
namespace sim = hocket::sim;
using executor = pipeline::executor<sim::domain>;

namespace {

/// All simulated ranks of a schedule.
class simulated {
 public:
  simulated(const schedule& plan, const schedules::costs& costs, const sim::conditions& how = {})
      : world_(plan.ranks(), how) {
    for (int rank = 0; rank < plan.ranks(); ++rank) {
      const auto spend = [this, rank](double seconds) { world_.spend(rank, seconds); };
      std::vector<pipeline::any_stage> own;
      for (int stage = 0; stage < plan.stages(); ++stage) {
        if (!plan.placement.holds(rank, stage)) continue;
        stages_.emplace_back(stage, plan.stages(), costs.of(stage), spend);
        own.emplace_back(stages_.back());
      }
      ranks_.push_back(std::make_unique<executor>(world_.comm(rank), plan, own));
    }
  }

  /// Runs one step, which all ranks begin at the same time.
  void run() {
    for (int rank = 0; rank < world_.size(); ++rank) world_.spend(rank, world_.now() - world_.time_of(rank));
    for (auto& each : ranks_) each->start();
    world_.run();
    for (auto& each : ranks_) CHECK(each->advance());
  }

  double makespan() const {
    double end = 0;
    for (const auto& each : ranks_) end = std::max(end, each->measured().back().end);
    return end;
  }

  executor& rank(int number) { return *ranks_[static_cast<std::size_t>(number)]; }
  waiting_stage& stage(std::size_t number) { return stages_[number]; }
  sim::world& world() { return world_; }

 private:
  sim::world world_;
  std::deque<waiting_stage> stages_;  // which the executors refer to
  std::vector<std::unique_ptr<executor>> ranks_;
};

/// Costs that differ from stage to stage, between 1 and 3 ms.
schedules::costs uneven(int stages, double hop) {
  std::vector<schedules::stage_cost> all;
  for (int s = 0; s < stages; ++s) {
    const auto time = [&](std::uint64_t which) {
      return 2e-3 + 1e-3 * number(7, static_cast<std::uint64_t>(s), which);
    };
    all.push_back({time(1), time(2), time(3), time(4)});
  }
  return schedules::costs(all, hop);
}

/// A machine on which each message takes `hop` seconds, independent of other messages.
sim::conditions machine_with(double hop) {
  sim::conditions how;
  how.model = {};
  how.model.latency = hop;
  how.model.latency_overlap = 1;
  return how;
}

}  // namespace

TEST_CASE("on simulated ranks, a stage that throws ends the step on all ranks") {
  simulated all(schedules::one_forward_one_backward(3, 8), uneven(3, 1e-6));
  all.stage(1).fail_at(2);
  std::string said;
  try {
    all.run();
  } catch (const hocket::error& problem) {
    said = problem.what();
  }
  const std::string reason = "stage 1 failed in 1F2, microbatch 2: no such token";
  CHECK(said.find(reason) != std::string::npos);
  CHECK_THROWS_AS(all.rank(1).advance(), std::out_of_range);
  for (const int rank : {0, 2}) {
    INFO("rank " << rank);
    CHECK_THROWS_WITH(all.rank(rank).advance(), Catch::Contains(reason));
  }
}

TEST_CASE("on simulated ranks, a step cannot start before the last step has completed") {
  simulated all(schedules::one_forward_one_backward(2, 4), uneven(2, 1e-6));
  all.rank(0).start();
  CHECK_THROWS_WITH(all.rank(0).start(), Catch::Contains("a step of this executor is under way"));
  CHECK_THROWS_WITH(all.rank(0).run(), Catch::Contains("a step of this executor is under way"));
  all.rank(1).start();
  all.world().run();
  for (const int rank : {0, 1}) CHECK(all.rank(rank).advance());
  all.run();
}

TEST_CASE("on simulated ranks, stages that do not fit are rejected in the first step") {
  const schedule plan = schedules::gpipe(2, 2);
  sim::world world(2);
  waiting_stage first(
      0, 2, {}, [](double) {}, 8);
  waiting_stage second(
      1, 2, {}, [](double) {}, 16);
  executor zero(world.comm(0), plan, {first});
  executor one(world.comm(1), plan, {second});
  zero.start();
  one.start();
  CHECK_THROWS_WITH(world.run(), Catch::Contains("stage 0 on rank 0 gives 8 bytes (8 elements of 1) per microbatch") &&
                                     Catch::Contains("stage 1 on rank 1 takes 16 bytes"));
}

TEST_CASE("on simulated ranks, every schedule takes as long as predicted") {
  int compared = 0;
  double worst = 0;
  for (const int ranks : {1, 2, 3, 4, 8}) {
    for_every_schedule(
        [&](const schedule& given, const sizes& s) {
          if (s.ranks != ranks || s.microbatches % 4 != 0 || s.stages_per_rank > 2) return;
          for (const schedule& plan : {given, schedules::recompute_activations(given)}) {
            INFO(plan.name() << ", " << s.ranks << " ranks, " << s.microbatches << " microbatches");
            for (const double hop : {1e-6, 0.5e-3}) {
              const schedules::costs costs = uneven(plan.stages(), hop);
              simulated all(plan, costs, machine_with(hop));
              all.run();
              all.run();  // a second step is like the first
              const double predicted = schedules::run_clock(plan, costs).makespan;
              const double off = std::abs(all.makespan() / predicted - 1);
              worst = std::max(worst, off);
              CHECK(off <= 0.05);
              ++compared;
            }
          }
        },
        ranks, 16);
  }
  WARN(compared << " steps of simulated ranks: makespan off by at most " << 100 * worst << " %");
  CHECK(compared > 100);
}

TEST_CASE("on simulated ranks, a pair begins when the inputs of both tasks have arrived, for all hop times") {
  const schedule by_hand = schedules::parse(
      "# placement: loop\n# stages: 2\n"
      "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n"
      "1F0,1B0,1F1,1B1\n");
  for (const schedule& plan : {schedules::dual_pipe(2, 4), schedules::dual_pipe(4, 8), schedules::dual_pipe_v(2, 4),
                               schedules::dual_pipe_v(4, 8), by_hand}) {
    for (const double forward : {1e-3, 3e-3, 10e-3}) {
      for (const double hop : {0.5e-3, 1e-3, 5e-3}) {
        INFO(plan.name() << ", " << plan.ranks() << " ranks, forward " << forward << " s, hop " << hop << " s");
        const std::vector<schedules::stage_cost> stages(static_cast<std::size_t>(plan.stages()), {forward, 1e-3, 1e-3});
        const schedules::costs costs(stages, hop);
        simulated all(plan, costs, machine_with(hop));
        all.run();
        CHECK(std::abs(all.makespan() / schedules::run_clock(plan, costs).makespan - 1) <= 0.05);
      }
    }
  }
}

namespace {

/// Returns the lowered schedule, with outputs that are sent one forward pass later than possible.
schedule with_late_sends(const schedule& given) {
  schedule plan = schedules::lower(given);
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    schedules::row late, held;
    const auto let_go = [&] {
      late.insert(late.end(), held.begin(), held.end());
      held.clear();
    };
    for (const schedules::schedule_action& each : plan.of(rank)) {
      if (each.first.kind == schedules::task_kind::send_forward) {
        held.push_back(each);
        continue;
      }
      if (schedules::is_computation(each.first.kind) && each.first.kind != schedules::task_kind::forward) let_go();
      late.push_back(each);
      if (each.first.kind == schedules::task_kind::forward) let_go();
    }
    let_go();
    plan.of(rank) = late;
  }
  return plan;
}

}  // namespace

TEST_CASE("run_clock takes the positions of sends in a schedule into account") {
  for (const schedule& plan : {schedules::gpipe(3, 8), schedules::gpipe(4, 5), schedules::breadth_first(2, 8, 2),
                               schedules::breadth_first(4, 8, 2)}) {
    INFO(plan.name());
    const schedules::costs costs = uneven(plan.stages(), 0.5e-3);
    const schedule late = with_late_sends(plan);
    const auto predicted = schedules::run_clock(late, costs);
    REQUIRE(predicted.complete);
    CHECK(predicted.makespan > schedules::run_clock(plan, costs).makespan);
    simulated all(late, costs, machine_with(0.5e-3));
    all.run();
    CHECK(std::abs(all.makespan() / predicted.makespan - 1) <= 0.05);
  }
}

namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool times_are_real = false;  // sanitizers make messages many times slower
#else
constexpr bool times_are_real = true;
#endif

/// Number of involuntary context switches of this thread.
long interruptions() {
  rusage used{};
  ::getrusage(RUSAGE_THREAD, &used);
  return used.ru_nivcsw;
}

void spin_until(std::chrono::steady_clock::time_point end) {
  while (std::chrono::steady_clock::now() < end) {}
}

/// Two threads as ranks that begin a step at the same time.
struct spinning_run {
  std::atomic<std::int64_t> begin{0};
  double ends[2] = {};
  bool disturbed[2] = {};

  /// Runs one step; both ranks call it. Returns true if no rank has lost its core during the step.
  bool step(hocket_test::thread_rank& me, pipeline::executor<hocket::local::domain>& ranks) {
    using clock = std::chrono::steady_clock;
    const auto self = static_cast<std::size_t>(me.rank());
    hocket::barrier(me.comm());
    if (self == 0) begin = (clock::now() + std::chrono::microseconds(100)).time_since_epoch().count();
    hocket::barrier(me.comm());
    const long before = interruptions();
    const clock::time_point common{clock::duration(begin.load())};
    spin_until(common);
    const double late = std::chrono::duration<double>(clock::now() - common).count();
    ranks.run();
    ends[self] = late + ranks.measured().back().end;
    disturbed[self] = interruptions() != before || late > 20e-6;
    hocket::barrier(me.comm());
    return !disturbed[0] && !disturbed[1];
  }
};

}  // namespace

TEST_CASE("on threads as ranks, a step of stages that spin takes as long as predicted") {
  if (std::thread::hardware_concurrency() < 2) {
    WARN("needs two cores");
    return;
  }
  // On a busy machine ranks lose their cores, which makes steps longer. One step must be as predicted, unless there
  // were too few steps in which no rank lost its core.
  constexpr std::chrono::seconds longest(3);
  constexpr int enough_undisturbed = 50;
  const std::vector<schedule> plans = {schedules::one_forward_one_backward(2, 6), schedules::zero_bubble(2, 6),
                                       schedules::interleaved(2, 4, 2), schedules::zero_bubble_v(2, 4)};
  for (const schedule& plan : plans) {
    std::vector<schedules::stage_cost> times;
    for (int stage = 0; stage < plan.stages(); ++stage) times.push_back({60e-6 + 10e-6 * stage, 80e-6, 50e-6});
    const schedules::costs costs(times);
    const double predicted = schedules::run_clock(plan, costs).makespan;
    spinning_run both;
    int undisturbed = 0;
    double best = 1;
    bool done = false;
    hocket_test::on_ranks(2, [&](hocket_test::thread_rank& me) {
      const auto spend = [](double seconds) {
        spin_until(std::chrono::steady_clock::now() +
                   std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * seconds)));
      };
      std::deque<waiting_stage> stages;
      std::vector<pipeline::any_stage> own;
      for (int stage = 0; stage < plan.stages(); ++stage) {
        if (!plan.placement.holds(me.rank(), stage)) continue;
        stages.emplace_back(stage, plan.stages(), costs.of(stage), spend);
        own.emplace_back(stages.back());
      }
      pipeline::executor ranks(me.comm(), plan, own);
      const auto last = std::chrono::steady_clock::now() + longest;
      for (bool over = false; !over;) {
        const bool counts = both.step(me, ranks);
        if (me.rank() == 0) {
          undisturbed += counts;
          best = std::min(best, std::abs(std::max(both.ends[0], both.ends[1]) / predicted - 1));
        }
        if (me.rank() == 0) {
          done = best <= 0.15 || undisturbed >= enough_undisturbed || std::chrono::steady_clock::now() > last;
        }
        hocket::barrier(me.comm());
        over = done;
        hocket::barrier(me.comm());
      }
    });
    WARN(plan.name() << ": makespan off by " << 100 * best << " %; undisturbed steps: " << undisturbed);
    if (best > 0.15 && undisturbed < enough_undisturbed) {
      WARN("the machine is too busy for this measurement");
    } else {
      CHECK((best <= 0.15 || !times_are_real));
    }
  }
}
