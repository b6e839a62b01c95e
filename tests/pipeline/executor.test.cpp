// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every schedule, run by threads as ranks: gradients of the whole model, order of the plan's steps, and failures.
#include "pipeline/against_model.hpp"
#include "pipeline/model.hpp"
#include "pipeline/noting.hpp"
#include "pipeline/waiting_stage.hpp"
#include "schedule/schedules.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/barrier.hpp>
#include <hocket/draw/schedule_comparison.hpp>
#include <hocket/pipeline/executor.hpp>
#include <hocket/pipeline/measured.hpp>
#include <hocket/schedule/greedy.hpp>
#include <hocket/schedule/lower/lower.hpp>
#include <hocket/schedule/measured_costs.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace pipeline_test;
using hocket_test::on_ranks;
using hocket_test::thread_rank;
namespace pipeline = hocket::pipeline;
using hocket::errc;

namespace {

/// The schedules of `ranks` ranks that the tests run: every generator, with small and uneven sizes.
std::vector<schedule> schedules_of(int ranks) {
  std::vector<schedule> all;
  for_every_schedule(
      [&](const schedule& plan, const sizes& s) {
        const bool chosen = s.microbatches == 1 || s.microbatches == 5 || s.microbatches == 8;
        if (s.ranks == ranks && chosen && s.stages_per_rank <= 3) all.push_back(plan);
      },
      ranks, 8);
  std::vector<int> rank_of_stage{0, ranks - 1};  // a user-defined placement: the last rank has the second stage
  for (int rank = ranks - 1; rank >= 0; --rank) rank_of_stage.push_back(rank);
  all.push_back(schedules::greedy(schedules::placement::given(rank_of_stage), 5, schedules::costs{}).plan);
  all.push_back(schedules::lower(schedules::zero_bubble_v(ranks, 5), {.defer_receives = true}));
  all.push_back(schedules::lower(schedules::one_forward_one_backward(ranks, 8), {.defer_receives = true}));
  return all;
}

/// Runs `plan` and compares the result with the whole model.
void compare(thread_rank& me, const schedule& plan, const std::vector<layer>& expected) {
  const std::string wrong = differs_from_model(me.comm(), plan, expected);
  me.check(wrong.empty(), wrong);
}

}  // namespace

TEST_CASE("every schedule gives the gradients of the whole model") {
  for (const int ranks : {1, 2, 3, 4, 5}) {
    std::map<std::pair<int, int>, std::vector<layer>> whole;
    const std::vector<schedule> all = schedules_of(ranks);
    for (const schedule& plan : all) {
      auto& model = whole[{plan.stages(), plan.microbatches}];
      if (model.empty()) model = sequential(plan.stages(), plan.microbatches);
    }
    on_ranks(ranks, [&](thread_rank& me) {
      for (const schedule& plan : all) {
        me.at([&] {
          return std::string(plan.name()) + ", " + std::to_string(plan.microbatches) + " microbatches, " +
                 std::to_string(plan.stages()) + " stages";
        });
        compare(me, plan, whole.at({plan.stages(), plan.microbatches}));
      }
    });
  }
}

TEST_CASE("the recorded tasks of the stages reveal a run of another schedule or of swapped stages") {
  // Stages 1 and 6 of eight have inputs and outputs of equal widths: no other check detects that they were swapped.
  schedule eight("eight", schedules::placement::given({0, 1, 0, 0, 0, 0, 1, 0}), 1);
  for (int stage = 0; stage < 8; ++stage) {
    eight.of(eight.placement.rank_of(stage, 0)).push_back(schedules::forward(stage, 0));
  }
  for (int stage = 7; stage >= 0; --stage) {
    eight.of(eight.placement.rank_of(stage, 0)).push_back(schedules::backward(stage, 0));
  }
  on_ranks(2, [&](thread_rank& me) {
    const auto runs_as_planned = [&](const schedule& given, bool swapped, const schedule& planned) {
      std::vector<task> notes;
      std::deque<noting_layer> own = noting_layers_of(given, me.rank(), notes);
      std::vector<pipeline::any_stage> stages(own.begin(), own.end());
      if (swapped && me.rank() == 1) std::reverse(stages.begin(), stages.end());
      pipeline::executor run(me.comm(), given, stages);
      run.run();
      return notes == computations(planned.of(me.rank()));
    };
    me.check(runs_as_planned(eight, false, eight), "a run as planned seems to differ");
    me.check(runs_as_planned(eight, true, eight) == (me.rank() == 0), "swapped stages were not detected");
    const schedule one = schedules::gpipe(2, 4);
    const schedule other = schedules::one_forward_one_backward(2, 4);
    me.check(!runs_as_planned(other, false, one), "another schedule was not detected");
  });
}

TEST_CASE("gather_measured gives every rank the tasks and times of all ranks") {
  for (const schedule& plan : {schedules::zero_bubble(3, 5), schedules::dual_pipe_v(3, 6)}) {
    on_ranks(3, [&](thread_rank& me) {
      std::vector<layer> own = layers_of(plan, me.rank());
      pipeline::executor run(me.comm(), plan, std::vector<pipeline::any_stage>(own.begin(), own.end()));
      run.run();
      const pipeline::timeline all = pipeline::gather_measured(me.comm(), run);
      pipeline::timeline mine;
      std::vector<schedules::schedule_action> done, listed;
      for (const auto& each : all) {
        done.push_back(each.what);
        if (each.rank == me.rank()) mine.push_back(each);
      }
      for (int rank = 0; rank < 3; ++rank) listed.insert(listed.end(), plan.of(rank).begin(), plan.of(rank).end());
      me.check(done == listed, "the tasks differ from the plan");
      bool equal = mine.size() == run.measured().size();
      for (std::size_t i = 0; equal && i < mine.size(); ++i) {
        equal = mine[i].begin == run.measured()[i].begin && mine[i].end == run.measured()[i].end;
      }
      me.check(equal, "a rank's own times differ");
      const schedules::costs found = schedules::measured_costs(plan, all);
      const std::string picture = schedules::draw_comparison_svg(plan, schedules::timeline_of(plan, found), all);
      me.check(picture.find(", run") != std::string::npos, "there is no picture");
    });
  }
}

TEST_CASE("gather_measured fails on every rank before the first step, and succeeds after a step") {
  on_ranks(3, [](thread_rank& me) {
    const schedule plan = schedules::zero_bubble(3, 5);
    std::vector<layer> own = layers_of(plan, me.rank());
    pipeline::executor run(me.comm(), plan, std::vector<pipeline::any_stage>(own.begin(), own.end()));
    const auto found = me.expect(errc::invalid_argument, [&] { pipeline::gather_measured(me.comm(), run); });
    me.check(found && std::string(found->what()).find("3 of 3 ranks have not run a whole step") != std::string::npos,
             [&] { return std::string("the message is different: ") + (found ? found->what() : ""); });
    run.run();
    me.check(pipeline::gather_measured(me.comm(), run).size() == plan.length(), "not every computation has its times");
  });
}

TEST_CASE("an executor runs many steps") {
  on_ranks(2, [](thread_rank& me) {
    const schedule plan = schedules::one_forward_one_backward(2, 4);
    std::vector<layer> own = layers_of(plan, me.rank());
    pipeline::executor run(me.comm(), plan, std::vector<pipeline::any_stage>(own.begin(), own.end()));
    for (int step = 0; step < 50; ++step) run.run();
    const auto expected = sequential(2, 4);
    const auto& found = own[0].gradient();
    const auto& once = expected[static_cast<std::size_t>(me.rank())].gradient();
    for (std::size_t i = 0; i < found.size(); ++i) {
      me.check(std::abs(found[i] - 50 * once[i]) <= 1e-10, "50 steps are not 50 times one step");
    }
    me.check(run.buffer_bytes() > 0 && run.buffer_bytes() <= 1024, "buffers are empty or larger than 1024 bytes");
  });
}

TEST_CASE("a start during a step is rejected, and the step in progress completes correctly") {
  on_ranks(2, [](thread_rank& me) {
    const schedule plan = schedules::one_forward_one_backward(2, 4);
    std::vector<layer> own = layers_of(plan, me.rank());
    pipeline::executor run(me.comm(), plan, std::vector<pipeline::any_stage>(own.begin(), own.end()));
    const auto refused = [&](auto begin) {
      const auto found = me.expect(errc::invalid_argument, begin);
      me.check(found && std::string(found->what()).find("a step of this executor is under way") != std::string::npos,
               [&] { return std::string("the reason is not the step in progress: ") + (found ? found->what() : ""); });
    };
    run.start();
    if (me.rank() == 0) run.advance();
    refused([&] { run.run(); });
    refused([&] { run.start(); });
    while (!run.advance()) std::this_thread::yield();
    run.run();
    std::vector<layer> expected = layers_of(plan, me.rank());
    pipeline::executor twice(me.comm(), plan, std::vector<pipeline::any_stage>(expected.begin(), expected.end()));
    twice.run();
    twice.run();
    me.check(own[0].gradient() == expected[0].gradient(), "not the gradients of two steps");
  });
}

TEST_CASE("the buffer memory of 1F1B does not grow with the number of microbatches") {
  on_ranks(4, [](thread_rank& me) {
    const auto bytes_of = [&](int microbatches) {
      const schedule plan = schedules::one_forward_one_backward(4, microbatches);
      waiting_stage own(
          me.rank(), 4, {}, [](double) {}, 64);
      pipeline::executor run(me.comm(), plan, {own});
      run.run();
      return run.buffer_bytes();
    };
    const std::size_t few = bytes_of(8);
    me.check(few <= 64 * std::size_t{10}, [&] { return std::to_string(few / 64) + " buffers"; });
    for (const int microbatches : {9, 32, 200}) {
      const std::size_t many = bytes_of(microbatches);
      me.check(many == few, [&] {
        return std::to_string(many / 64) + " buffers for " + std::to_string(microbatches) + " microbatches, " +
               std::to_string(few / 64) + " for 8";
      });
    }
  });
}

TEST_CASE("a schedule that lists its messages may wait for sends later, but must wait for all") {
  const std::vector<layer> expected = sequential(3, 6);
  for (const int microbatches_late : {0, 1, 5}) {
    schedule plan = schedules::lower(schedules::one_forward_one_backward(3, 6));
    for (schedules::row& actions : plan.rows) {  // some waits move to the end of the row
      const auto is_late = [&](const schedules::schedule_action& each) {
        const auto what = each.first.kind;
        return (what == schedules::task_kind::wait_send_forward || what == schedules::task_kind::wait_send_backward) &&
               each.first.microbatch < microbatches_late;
      };
      std::stable_partition(actions.begin(), actions.end(), [&](const auto& each) { return !is_late(each); });
    }
    on_ranks(3, [&](thread_rank& me) { compare(me, plan, expected); });
    on_ranks(3, [&](thread_rank& me) {
      schedule without = plan;
      without.of(1).pop_back();
      std::vector<layer> own = layers_of(plan, me.rank());
      const auto found = me.expect(errc::invalid_argument, [&] {
        pipeline::executor run(me.comm(), without, std::vector<pipeline::any_stage>(own.begin(), own.end()));
      });
      const std::string says = found ? found->what() : "";
      me.check(says.find("a buffer must not be overwritten while it is read") != std::string::npos, says);
    });
  }
}

namespace {

/// Throws in the forward pass of microbatch `fails_at`.
struct failing_stage {
  using input_type = double;
  using output_type = double;
  int index = 0;
  int stages = 1;
  int fails_at = -1;
  std::size_t input_size() const { return index == 0 ? 0 : 2; }
  std::size_t output_size() const { return index + 1 == stages ? 0 : 2; }
  void forward(int microbatch, std::span<const double>, std::span<double>) {
    if (microbatch == fails_at) throw std::out_of_range("no such token");
  }
  void backward(int, std::span<const double>, std::span<const double>, std::span<double>) {}
};

}  // namespace

TEST_CASE("an exception of a stage reaches every rank, with stage and microbatch") {
  for (const int ranks : {2, 3, 5}) {
    on_ranks(ranks, [&](thread_rank& me) {
      failing_stage own{me.rank(), ranks, me.rank() == 1 ? 2 : -1};
      const auto train = [&] {  // others may learn of the failure during their set-up
        pipeline::executor run(me.comm(), schedules::one_forward_one_backward(ranks, 8), {own});
        run.run();
      };
      if (me.rank() == 1) {
        bool thrown = false;
        try {
          train();
        } catch (const std::out_of_range&) {
          thrown = true;
        }
        me.check(thrown, "the exception did not reach the caller on its rank");
      } else {
        const auto found = me.expect(errc::aborted, train);
        const std::string says = found ? found->what() : "";
        me.check(says.find("stage 1 failed in 1F2, microbatch 2: no such token") != std::string::npos,
                 [&] { return "the message is: " + says; });
      }
    });
  }
}

namespace {

/// Throws in one function, for microbatch 1 if the function has a microbatch.
struct fragile_stage {
  using input_type = double;
  using output_type = double;
  int index = 0;
  int stages = 1;
  task_kind fails_in = task_kind::nothing;
  bool strangely = false;  ///< throws an object that is not a std::exception
  std::size_t input_size() const { return index == 0 ? 0 : 2; }
  std::size_t output_size() const { return index + 1 == stages ? 0 : 2; }
  void come_to(task_kind what, int microbatch = 1) const {
    if (what != fails_in || microbatch != 1) return;
    if (strangely) throw 7;
    throw std::out_of_range("no such token");
  }
  void forward(int m, std::span<const double>, std::span<double>) { come_to(task_kind::forward, m); }
  void backward(int m, std::span<const double>, std::span<const double>, std::span<double>) {
    come_to(task_kind::backward, m);
  }
  void input_gradient(int m, std::span<const double>, std::span<const double>, std::span<double>) {
    come_to(task_kind::input_gradient, m);
  }
  void weight_gradient(int m, std::span<const double>, std::span<const double>) {
    come_to(task_kind::weight_gradient, m);
  }
  void unshard() { come_to(task_kind::unshard); }
  void reshard() { come_to(task_kind::reshard); }
  void reduce_gradient() { come_to(task_kind::reduce_gradient); }
  void wait_reduce_gradient() { come_to(task_kind::wait_reduce_gradient); }
  void update() { come_to(task_kind::update); }
};

}  // namespace

TEST_CASE("an exception in any function of a stage reaches every rank, with the name of the task") {
  const auto plan_with = [](task_kind what) {
    const schedule plan = what == task_kind::backward ? schedules::gpipe(3, 2) : schedules::zero_bubble(3, 3);
    return schedules::lower(plan, {.shard_parameters = true, .reduce_gradients = true, .update_parameters = true});
  };
  for (const task_kind what : {task_kind::forward, task_kind::backward, task_kind::input_gradient,
                               task_kind::weight_gradient, task_kind::unshard, task_kind::reshard,
                               task_kind::reduce_gradient, task_kind::wait_reduce_gradient, task_kind::update}) {
    for (const bool strangely : {false, true}) {
      on_ranks(3, [&](thread_rank& me) {
        me.at([&] { return std::string(schedules::to_string(what)); });
        fragile_stage own{me.rank(), 3, me.rank() == 1 ? what : task_kind::nothing, strangely};
        const auto train = [&] {
          pipeline::executor run(me.comm(), plan_with(what), {own});
          for (int step = 0; step < 3; ++step)
            run.run();  // a failure late in a row may reach others in their next step
        };
        if (me.rank() == 1) {
          bool thrown = false;
          try {
            train();
          } catch (const std::out_of_range&) {
            thrown = !strangely;
          } catch (int) {
            thrown = strangely;
          }
          me.check(thrown, "the exception did not reach the caller on its rank");
          return;
        }
        const auto found = me.expect(errc::aborted, train);
        const std::string text = schedules::to_string(what);
        const std::string reason = strangely ? "an exception that is not a std::exception" : "no such token";
        const std::string says =
            "stage 1 failed in 1" + text + (has_microbatch(what) ? "1, microbatch 1: " : ": ") + reason;
        me.check(found && std::string(found->what()).find(says) != std::string::npos,
                 [&] { return "the message lacks '" + says + "': " + (found ? found->what() : ""); });
      });
    }
  }
}

TEST_CASE("a message that completed before another stage threw does not hide the exception") {
  const schedule plan = schedules::lower(
      schedules::interleaved(5, 5, 2), {.shard_parameters = true, .reduce_gradients = true, .update_parameters = true});
  for (int turn = 0; turn < 200; ++turn) {  // the messages that have completed differ
    on_ranks(5, [&](thread_rank& me) {
      fragile_stage first{me.rank(), 10}, second{me.rank() + 5, 10};
      if (me.rank() == 2) second.fails_in = task_kind::backward;
      const auto train = [&] {
        pipeline::executor run(me.comm(), plan, {first, second});
        run.run();
        hocket::barrier(me.comm());
      };
      if (me.rank() == 2) {
        try {
          train();
          me.check(false, "nothing was thrown");
        } catch (const std::out_of_range&) {}
        return;
      }
      const auto found = me.expect(errc::aborted, train);
      me.check(found && std::string(found->what()).find("stage 7 failed in 7B1, microbatch 1") != std::string::npos,
               [&] { return std::string("the message is: ") + (found ? found->what() : ""); });
    });
  }
}

TEST_CASE("a rank that has left causes an error on every other rank, which names it") {
  for (const int ranks : {2, 3, 5}) {
    const auto place = std::make_shared<hocket::local::world>(ranks);
    on_ranks(ranks, [&](thread_rank& me) {
      auto comm = hocket::local::connect(place, me.rank(), std::chrono::seconds(30));
      failing_stage own{me.rank(), ranks};
      pipeline::executor run(comm, schedules::one_forward_one_backward(ranks, 8), {own});
      run.run();
      if (me.rank() == 1) return;  // and destroys its objects
      const auto found = me.expect(errc::peer_lost, [&] {
        for (int step = 0; step < 2; ++step) run.run();
      });
      me.check(found && found->context().peer == 1,
               [&] { return std::string("the peer is not rank 1: ") + (found ? found->what() : ""); });
    });
  }
}

namespace {

/// Stage 1 blocks in the forward pass of microbatch 2 until `may_return()`.
struct stuck_stage {
  using input_type = double;
  using output_type = double;
  int index = 0;
  int stages = 1;
  std::function<bool()> may_return;
  std::size_t input_size() const { return index == 0 ? 0 : 2; }
  std::size_t output_size() const { return index + 1 == stages ? 0 : 2; }
  void forward(int microbatch, std::span<const double>, std::span<double>) {
    while (microbatch == 2 && index == 1 && !may_return()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  void backward(int, std::span<const double>, std::span<const double>, std::span<double>) {}
};

}  // namespace

TEST_CASE("a stage that does not return causes a timeout on every other rank") {
  for (const int ranks : {2, 3, 5}) {
    std::atomic<int> over{0};
    on_ranks(ranks, [&](thread_rank& me) {
      me.comm().set_timeout(std::chrono::milliseconds(300));
      // The stage returns when all other ranks have failed, so that no rank can have waited for it.
      const auto last = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      const auto others_over = [&] { return over == ranks - 1 || std::chrono::steady_clock::now() > last; };
      stuck_stage own{me.rank(), ranks, others_over};
      const auto found = me.expect(errc::timeout, [&] {
        pipeline::executor run(me.comm(), schedules::one_forward_one_backward(ranks, 8), {own});
        run.run();
      });
      if (me.rank() == 1) {
        me.check(over == ranks - 1, "another rank did not end by its deadline");
      } else {
        me.check(found && found->context().peer == 1,
                 [&] { return std::string("the peer is not rank 1: ") + (found ? found->what() : ""); });
        ++over;
      }
    });
  }
}

TEST_CASE("an executor that is destroyed during a step ends it on every other rank immediately, with the reason") {
  for (const int ranks : {2, 3, 5}) {
    on_ranks(ranks, [&](thread_rank& me) {
      failing_stage own{me.rank(), ranks};
      const schedules::schedule plan = schedules::one_forward_one_backward(ranks, 8);
      std::optional<pipeline::executor<hocket::local::domain>> run(std::in_place, me.comm(), plan,
                                                                   std::vector<pipeline::any_stage>{own});
      const auto begin = std::chrono::steady_clock::now();
      const auto give_up = [&] {
        run->run();
        run->start();
        run.reset();
        hocket::barrier(me.comm());
      };
      const auto go_on = [&] {
        for (int step = 0; step < 2; ++step) run->run();
        hocket::barrier(me.comm());
      };
      const auto found = me.expect(errc::aborted, [&] { me.rank() == 1 ? give_up() : go_on(); });
      me.check(found && std::string(found->what()).find("was destroyed") != std::string::npos,
               [&] { return std::string("the message is: ") + (found ? found->what() : ""); });
      me.check(std::chrono::steady_clock::now() - begin < hocket_test::rank_timeout / 3, "the rank waited too long");
    });
  }
}

TEST_CASE("schedules and stages that do not fit are rejected before the first step") {
  on_ranks(2, [](thread_rank& me) {
    const auto refuses = [&](const char* says, auto make) {
      const auto found = me.expect(errc::invalid_argument, make);
      me.check(found && std::string(found->what()).find(says) != std::string::npos,
               [&] { return std::string("the message lacks '") + says + "': " + (found ? found->what() : ""); });
    };
    failing_stage own{me.rank(), 2};
    failing_stage other = own;
    refuses("the schedule is for 3 ranks, the communicator has 2",
            [&] { pipeline::executor run(me.comm(), schedules::gpipe(3, 2), {own}); });
    refuses("was given 2 stages; the schedule puts 1 on it", [&] {
      pipeline::executor run(me.comm(), schedules::gpipe(2, 2), {own, other});
    });
    refuses("has only backward; this schedule needs input_gradient and weight_gradient",
            [&] { pipeline::executor run(me.comm(), schedules::zero_bubble(2, 2), {own}); });
    refuses(me.rank() == 0 ? "rank 1 has stages that do not fit" : "rank 1 was given 2 stages", [&] {
      std::vector<pipeline::any_stage> some{own};
      if (me.rank() == 1) some.emplace_back(other);
      pipeline::executor run(me.comm(), schedules::gpipe(2, 2), some);
    });
    refuses("work is missing", [&] {
      schedule damaged = schedules::gpipe(2, 2);
      damaged.of(1).pop_back();
      pipeline::executor run(me.comm(), damaged, {own});
    });
    failing_stage turned{1 - me.rank(), 2};
    refuses("the first stage fetches its microbatches itself",
            [&] { pipeline::executor run(me.comm(), schedules::gpipe(2, 2), {turned}); });
    std::vector<layer> layers = layers_of(schedules::gpipe(2, 2), me.rank());
    refuses("stage 0 on rank 0 gives 40 bytes (5 elements of 8) per microbatch, stage 1 on rank 1 takes 16 bytes", [&] {
      if (me.rank() == 0) pipeline::executor run(me.comm(), schedules::gpipe(2, 2), {layers[0]});
      else pipeline::executor run(me.comm(), schedules::gpipe(2, 2), {own});
    });
  });
}
