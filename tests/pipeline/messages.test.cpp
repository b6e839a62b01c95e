// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The executor's messages are not confused with other messages, and completed messages are not searched again.
#include "pipeline/model.hpp"
#include "pipeline/pattern_stage.hpp"
#include "pipeline/waiting_stage.hpp"
#include "schedule/schedules.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/collective/send_recv.hpp>
#include <hocket/pipeline/executor.hpp>
#include <hocket/schedule/lower/lower.hpp>
#include <hocket/schedule/text.hpp>
#include <hocket/sim.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

using namespace pipeline_test;
using hocket_test::on_ranks;
using hocket_test::thread_rank;
namespace pipeline = hocket::pipeline;
namespace sim = hocket::sim;

namespace {

std::vector<pipeline::any_stage> stages_of(std::vector<layer>& own) { return {own.begin(), own.end()}; }

/// Checks that `own` has the gradients of the whole model.
void check_gradients(thread_rank& me, const schedule& plan, const std::vector<layer>& own) {
  const std::vector<layer> expected = sequential(plan.stages(), plan.microbatches);
  std::size_t next = 0;
  for (int stage = 0; stage < plan.stages(); ++stage) {
    if (!plan.placement.holds(me.rank(), stage)) continue;
    const layer& mine = own[next++];
    const std::string wrong = difference(mine.gradient(), mine.exact(), expected[static_cast<std::size_t>(stage)]);
    me.check(wrong.empty(), [&] { return std::string(plan.name()) + ": " + wrong; });
  }
}

/// A schedule that receives messages in another order than they are sent, so that tags must distinguish them.
schedule out_of_order() {
  return schedules::parse(
      "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B1,0RECV_B0,0B0,0B1,0WAIT_SEND_F0,0WAIT_SEND_F1\n"
      "1RECV_F1,1RECV_F0,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1WAIT_SEND_B0,1WAIT_SEND_B1\n");
}

}  // namespace

TEST_CASE("no buffer is reused before its message was read, even if some ranks are late") {
  for (const int ranks : {2, 3}) {
    on_ranks(ranks, [&](thread_rank& me) {
      for_every_schedule(
          [&](const schedule& plan, const sizes& s) {
            if (s.ranks != ranks || s.microbatches < 9 || s.stages_per_rank > 2) return;
            me.at([&] { return std::string(plan.name()) + ", " + std::to_string(s.microbatches) + " microbatches"; });
            for (const int buffers : {1, 2}) {
              std::deque<pattern_stage> own;
              for (int stage = 0; stage < plan.stages(); ++stage) {
                if (plan.placement.holds(me.rank(), stage)) own.emplace_back(stage, plan.stages(), 1000, 300);
              }
              const schedule lowered = schedules::wait_for_sends(schedules::add_messages(plan), buffers);
              pipeline::executor run(me.comm(), lowered, std::vector<pipeline::any_stage>(own.begin(), own.end()));
              for (int step = 0; step < 2; ++step) run.run();
              for (const pattern_stage& each : own) me.check(each.wrong() == 0, "received data differ from sent");
            }
          },
          ranks, 10);
    });
  }
}

TEST_CASE("messages of the user in flight are not confused with those of a pipeline") {
  for (const schedule& plan : {schedules::one_forward_one_backward(2, 4), out_of_order()}) {
    on_ranks(2, [&](thread_rank& me) {
      // The user's messages have the length of the pipeline's messages, and the default tag.
      const hocket::peer other{1 - me.rank()};
      std::vector<double> sent(width(1), 100 + me.rank());
      std::vector<double> early(width(1)), late(width(1));
      std::vector<layer> own = layers_of(plan, me.rank());
      pipeline::executor run(me.comm(), plan, stages_of(own));
      auto asked = hocket::recv_async(me.comm(), early, other);
      auto given = hocket::send_async(me.comm(), sent, other);
      if (me.rank() == 0) asked.wait();  // on rank 1 it stays in flight during the step
      if (me.rank() == 1) given.wait();
      run.run();
      if (me.rank() == 1) asked.wait();
      if (me.rank() == 0) given.wait();
      const std::vector<double> expected(width(1), 101 - me.rank());
      me.check(early == expected, "the user's message is wrong");
      check_gradients(me, plan, own);

      auto unread = hocket::send_async(me.comm(), sent, other);
      run.run();
      hocket::recv(me.comm(), late, other);
      unread.wait();
      me.check(late == expected, "the user's message is wrong");
    });
  }
}

TEST_CASE("two pipelines can run at the same time") {
  const std::vector<schedule> pairs[] = {
      {schedules::one_forward_one_backward(2, 4), schedules::gpipe(2, 6)},
      {out_of_order(), schedules::zero_bubble(2, 4)},
      {out_of_order(), out_of_order()},
  };
  for (const auto& plans : pairs) {
    on_ranks(2, [&](thread_rank& me) {
      std::vector<layer> first = layers_of(plans[0], me.rank());
      std::vector<layer> second = layers_of(plans[1], me.rank());
      pipeline::executor one(me.comm(), plans[0], stages_of(first));
      pipeline::executor two(me.comm(), plans[1], stages_of(second));
      one.start();
      two.start();
      bool one_is_over = false;
      bool two_is_over = false;
      while (!one_is_over || !two_is_over) {  // in a different order on each rank
        if (me.rank() == 0) one_is_over = one_is_over || one.advance();
        two_is_over = two_is_over || two.advance();
        if (me.rank() == 1) one_is_over = one_is_over || one.advance();
      }
      check_gradients(me, plans[0], first);
      check_gradients(me, plans[1], second);
    });
  }
}

TEST_CASE("several pipelines can run at the same time on simulated ranks, started in any order") {
  const schedule plan = schedules::one_forward_one_backward(3, 4);
  for (int order = 0; order < 8; ++order) {
    CAPTURE(order);
    sim::world world(3);
    std::deque<waiting_stage> stages;
    std::vector<std::unique_ptr<pipeline::executor<sim::domain>>> all[3];
    for (std::size_t rank = 0; rank < 3; ++rank) {
      auto& own = all[rank];
      const bool turned = (order >> rank & 1) != 0;
      for (const std::size_t bytes : {std::size_t{8}, std::size_t{16}, std::size_t{24}}) {
        stages.emplace_back(
            static_cast<int>(rank), 3, schedules::stage_cost{}, [](double) {}, bytes);
        own.push_back(std::make_unique<pipeline::executor<sim::domain>>(
            world.comm(static_cast<int>(rank)), plan, std::vector<pipeline::any_stage>{stages.back()}));
        if (turned && bytes == 8) own[0]->start();  // before the rank's other executors exist
      }
      if (turned) std::reverse(own.begin(), own.end());
      for (auto& each : own) {
        if (!turned || each != own.back()) each->start();
      }
    }
    for (int step = 0; step < 2; ++step) {
      world.run();
      for (auto& own : all) {
        for (auto& each : own) {
          CHECK(each->advance());
          CHECK(each->measured().size() == 8);
          if (step == 0) each->start();
        }
      }
    }
  }
}

namespace {

/// Records how many calls and messages the communicator must search.
struct counting_stage {
  using input_type = double;
  using output_type = double;
  int index = 0;
  std::function<std::size_t()> count;
  std::size_t most = 0;
  std::size_t input_size() const { return index == 0 ? 0 : 2; }
  std::size_t output_size() const { return index == 0 ? 2 : 0; }
  void forward(int, std::span<const double>, std::span<double>) { most = std::max(most, count()); }
  void backward(int, std::span<const double>, std::span<const double>, std::span<double>) {
    most = std::max(most, count());
  }
};

}  // namespace

TEST_CASE("completed messages are removed, so that an action costs the same in a long row") {
  on_ranks(2, [](thread_rank& me) {
    auto& state = hocket::detail::communicator_access::state(me.comm());
    const auto open = [&] { return std::max({state.active().size(), state.sends().size(), state.receives().size()}); };
    const std::size_t before = open();
    for (const int microbatches : {4, 40, 400}) {
      counting_stage own{me.rank(), open};
      pipeline::executor run(me.comm(), schedules::one_forward_one_backward(2, microbatches), {own});
      for (int step = 0; step < 2; ++step) {
        run.run();
        me.check(open() == before, "a message is still there after its step");
      }
      me.check(own.most <= before + 6, [&] {
        return std::to_string(own.most) + " messages in flight with " + std::to_string(microbatches) + " microbatches";
      });
    }
  });
}
