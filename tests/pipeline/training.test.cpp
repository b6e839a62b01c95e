// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parts of a training step beside forward and backward passes: updates and reductions of gradients at the positions
// that the schedule lists, and parameters that two stages share.
#include "schedule/schedules.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/collective/recv.hpp>
#include <hocket/collective/send.hpp>
#include <hocket/pipeline/executor.hpp>
#include <hocket/pipeline/microbatch.hpp>
#include <hocket/pipeline/tied.hpp>
#include <hocket/schedule/lower/lower.hpp>
#include <hocket/schedule/text.hpp>

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <vector>

using namespace pipeline_test;
using hocket_test::on_ranks;
using hocket_test::thread_rank;
namespace pipeline = hocket::pipeline;

namespace {

/// Records its tasks.
struct noting_stage {
  using input_type = double;
  using output_type = double;
  int index = 0;
  int stages = 1;
  std::vector<std::string>* notes = nullptr;

  std::size_t input_size() const { return index == 0 ? 0 : 1; }
  std::size_t output_size() const { return index + 1 == stages ? 0 : 1; }
  void note(const char* what) { notes->push_back(std::to_string(index) + what); }
  void forward(int m, std::span<const double>, std::span<double>) { note(("F" + std::to_string(m)).c_str()); }
  void input_gradient(int m, std::span<const double>, std::span<const double>, std::span<double>) {
    note(("I" + std::to_string(m)).c_str());
  }
  void weight_gradient(int m, std::span<const double>, std::span<const double>) {
    note(("W" + std::to_string(m)).c_str());
  }
  void reduce_gradient() { note("REDUCE_GRAD"); }
  void wait_reduce_gradient() { note("WAIT_REDUCE_GRAD"); }
  void update() { note("UPDATE"); }
};

}  // namespace

TEST_CASE("updates and reductions of gradients run at the positions that the schedule lists") {
  for (const schedule& plain : {schedules::zero_bubble(3, 4), schedules::zero_bubble_v(3, 6)}) {
    const schedule plan = schedules::lower(plain, {.reduce_gradients = true, .update_parameters = true});
    on_ranks(3, [&](thread_rank& me) {
      std::vector<std::string> notes;
      std::deque<noting_stage> stages;
      std::vector<pipeline::any_stage> own;
      for (int stage = 0; stage < plan.stages(); ++stage) {
        if (!plan.placement.holds(me.rank(), stage)) continue;
        stages.push_back({stage, plan.stages(), &notes});
        own.emplace_back(stages.back());
      }
      pipeline::executor run(me.comm(), plan, own);
      run.run();
      std::vector<std::string> listed;
      std::size_t updates = 0;
      for (const schedules::schedule_action& each : plan.of(me.rank())) {
        const auto what = each.first.kind;
        if (what >= schedules::task_kind::send_forward) continue;
        listed.push_back(schedules::to_string(each.first));
        updates += what == schedules::task_kind::update;
      }
      me.check(updates == stages.size(), "not each stage is updated once");
      me.check(notes == listed, "the calls differ from the schedule");
    });
  }
}

namespace {

struct plain_stage {
  using input_type = double;
  using output_type = double;
  int index = 0;
  std::size_t input_size() const { return index == 0 ? 0 : 1; }
  std::size_t output_size() const { return index == 1 ? 0 : 1; }
  void forward(int, std::span<const double>, std::span<double>) {}
  void backward(int, std::span<const double>, std::span<const double>, std::span<double>) {}
};
struct updated_stage : plain_stage {
  void update() {}
};
struct reduced_stage : plain_stage {
  void reduce_gradient() {}
  void update() {}
};
struct gathered_stage : plain_stage {
  void unshard() {}
};

}  // namespace

TEST_CASE("a stage without a function that the schedule lists is rejected, and the error names both") {
  const auto refuses = [](auto kind, const schedules::lowering& which, const char* lacks) {
    on_ranks(2, [&](thread_rank& me) {
      auto stage = kind;
      stage.index = me.rank();
      const auto found = me.expect(hocket::errc::invalid_argument, [&] {
        pipeline::executor run(me.comm(), schedules::lower(schedules::gpipe(2, 2), which), {stage});
      });
      const std::string says = "stage " + std::to_string(me.rank()) + " lacks " + lacks;
      me.check(found && std::string(found->what()).find(says) != std::string::npos,
               [&] { return "the message lacks '" + says + "': " + (found ? found->what() : ""); });
    });
  };
  refuses(plain_stage{}, {.update_parameters = true}, "update(); this schedule has ");
  refuses(plain_stage{}, {.reduce_gradients = true}, "reduce_gradient(); this schedule has ");
  refuses(updated_stage{}, {.reduce_gradients = true, .update_parameters = true}, "reduce_gradient()");
  refuses(reduced_stage{}, {.reduce_gradients = true}, "wait_reduce_gradient()");
  refuses(plain_stage{}, {.shard_parameters = true}, "unshard()");
  refuses(gathered_stage{}, {.shard_parameters = true}, "reshard()");
  on_ranks(2, [](thread_rank& me) {
    updated_stage own{{me.rank()}};
    pipeline::executor run(me.comm(), schedules::lower(schedules::gpipe(2, 2), {.update_parameters = true}), {own});
    run.run();
  });
}

TEST_CASE("gradients of shared parameters are added between the ranks that hold them") {
  using schedules::placement;
  const std::vector<placement> all = {placement::loop(1),
                                      placement::loop(2),
                                      placement::loop(5, 2),
                                      placement::v_shape(3),
                                      placement::loop(3),
                                      placement::two_directions(4, 8),
                                      placement::given({1, 0, 2, 1})};
  for (const placement& where : all) {
    const std::vector<int> tied{0, where.stages() - 1};
    on_ranks(where.ranks(), [&](thread_rank& me) {
      // Sums of these depend on their order, so that equal bits show an equal order.
      const auto value = [](int rank, std::size_t i) {
        return 1.0 / (3 + rank * 7 + static_cast<int>(i)) + rank * 1e9;
      };
      std::vector<double> gradient(5);
      for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = value(me.rank(), i);
      pipeline::add_tied(me.comm(), where, tied, std::span(gradient));
      const bool holds = where.holds(me.rank(), tied[0]) || where.holds(me.rank(), tied[1]);
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        double expected = value(me.rank(), i);
        bool first = true;
        for (int rank = 0; holds && rank < where.ranks(); ++rank) {
          if (!where.holds(rank, tied[0]) && !where.holds(rank, tied[1])) continue;
          expected = first ? value(rank, i) : expected + value(rank, i);
          first = false;
        }
        me.check(gradient[i] == expected, [&] {
          return std::string(where.name()) + ": " + std::to_string(gradient[i]) + " instead of " +
                 std::to_string(expected);
        });
      }
      const auto refused = me.expect(hocket::errc::invalid_argument, [&] {
        pipeline::add_tied(me.comm(), where, {where.stages()}, std::span(gradient));
      });
      me.check(refused && std::string(refused->what()).find("training.test.cpp:") != std::string::npos,
               "the error does not name the caller's line");
    });
  }
}

TEST_CASE("sums of tied gradients are not confused with messages of the caller") {
  on_ranks(2, [](thread_rank& me) {
    const hocket::peer other{1 - me.rank()};
    const std::vector<double> sent{500.0 + me.rank()};
    std::vector<double> early(1), late(1), gradient{1.0 + me.rank()};
    auto receiving = hocket::recv_async(me.comm(), early, other);
    auto sending = hocket::send_async(me.comm(), sent, other);
    auto sending_more = hocket::send_async(me.comm(), sent, other);
    pipeline::add_tied(me.comm(), hocket::plan::pipeline::placement::v_shape(2), {0, 2}, std::span(gradient));
    hocket::recv(me.comm(), late, other);
    for (hocket::request* each : {&receiving, &sending, &sending_more}) each->wait();
    me.check(gradient[0] == 3.0, [&] { return "the sum is " + std::to_string(gradient[0]) + " instead of 3"; });
    me.check(early[0] == 501.0 - me.rank() && late[0] == early[0], "a message is not what was sent");
  });
}

TEST_CASE("microbatches are equal parts of a batch, and cover it") {
  std::vector<int> batch(24);
  for (const int microbatches : {1, 2, 3, 8, 24}) {
    std::size_t next = 0;
    for (int m = 0; m < microbatches; ++m) {
      const std::span<int> part = pipeline::microbatch_of(std::span(batch), m, microbatches);
      CHECK(part.data() == batch.data() + next);
      CHECK(part.size() == batch.size() / static_cast<std::size_t>(microbatches));
      next += part.size();
    }
    CHECK(next == batch.size());
  }
  using pipeline::microbatch_of;
  CHECK_THROWS_AS(microbatch_of(std::span(batch), 0, 5), hocket::error);
  CHECK_THROWS_WITH(microbatch_of(std::span(batch), 0, 5), Catch::Contains("training.test.cpp:"));
  CHECK_THROWS_AS(microbatch_of(std::span(batch), 3, 3), hocket::error);
  CHECK_THROWS_AS(microbatch_of(std::span(batch), -1, 3), hocket::error);
  CHECK_THROWS_AS(microbatch_of(std::span(batch), 0, 0), hocket::error);
}
