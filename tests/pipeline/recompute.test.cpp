// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stages that release the activations of a forward pass and recompute them: the gradients are those of the whole model,
// and no rank stores more than the peak of its schedule.
#include "pipeline/against_model.hpp"
#include "pipeline/model.hpp"
#include "pipeline/noting.hpp"
#include "schedule/schedules.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/pipeline/executor.hpp>
#include <hocket/schedule/lower/lower.hpp>
#include <hocket/schedule/schedule_trace.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace pipeline_test;
using hocket_test::on_ranks;
using hocket_test::thread_rank;
namespace pipeline = hocket::pipeline;
using hocket::errc;

namespace {

/// Number of activations that the stages of a rank store; one is that of one stage for one microbatch.
struct kept {
  int now = 0;
  int most = 0;
  void add(int by) { most = std::max(most, now += by); }
};

/// Counts the activations that it stores; `forget` releases those of a microbatch.
class forgetful_layer : public noting_layer {
 public:
  forgetful_layer(int index, int stages, int microbatches, std::vector<task>& notes, kept& of_rank)
      : noting_layer(index, stages, microbatches, notes), kept_(of_rank) {}

  void forward(int m, std::span<const double> in, std::span<double> out) {
    kept_.add(1);
    noting_layer::forward(m, in, out);
  }
  void forget(int m) {
    layer::forget(m);
    kept_.add(-1);
  }
  void recompute(int m, std::span<const double> in) {
    kept_.add(1);
    noting_layer::recompute(m, in);
  }
  void weight_gradient(int m, std::span<const double> in, std::span<const double> out_gradient) {
    noting_layer::weight_gradient(m, in, out_gradient);
    kept_.add(-1);
  }
  void backward(int m, std::span<const double> in, std::span<const double> out_gradient,
                std::span<double> in_gradient) {
    noting_layer::backward(m, in, out_gradient, in_gradient);
    kept_.add(-1);
  }

 private:
  kept& kept_;
};

void compare_forgetful(thread_rank& me, const schedule& plan, const std::vector<layer>& expected) {
  std::vector<task> notes;
  kept of_rank;
  std::deque<forgetful_layer> own;
  for (int stage = 0; stage < plan.stages(); ++stage) {
    if (!plan.placement.holds(me.rank(), stage)) continue;
    own.emplace_back(stage, plan.stages(), plan.microbatches, notes, of_rank);
  }
  const std::string wrong = differs_from_model(me.comm(), plan, own, notes, expected);
  me.check(wrong.empty(), wrong);
  me.check(of_rank.now == 0, "activations are still stored after the step");
  // A pair counts its forward pass before it releases what its backward pass needs.
  me.check(of_rank.most <= schedules::peak_activations(plan, me.rank()), [&] {
    return std::to_string(of_rank.most) + " are stored, the plan's peak is " +
           std::to_string(schedules::peak_activations(plan, me.rank()));
  });
}

/// A stage that cannot recompute its activations.
struct keeping_stage {
  using input_type = double;
  using output_type = double;
  int index = 0;
  std::size_t input_size() const { return index == 0 ? 0 : 2; }
  std::size_t output_size() const { return index == 0 ? 2 : 0; }
  void forward(int, std::span<const double>, std::span<double>) {}
  void backward(int, std::span<const double>, std::span<const double>, std::span<double>) {}
};

}  // namespace

TEST_CASE("every schedule gives the gradients of the whole model if stages recompute their activations") {
  for (const int ranks : {1, 2, 3, 4}) {
    std::map<std::pair<int, int>, std::vector<layer>> whole;
    std::vector<schedule> all;
    for_every_schedule(
        [&](const schedule& plan, const sizes& s) {
          if (s.ranks != ranks || s.stages_per_rank > 2 || (s.microbatches != 3 && s.microbatches != 8)) return;
          all.push_back(schedules::recompute_activations(plan));
          all.push_back(schedules::recompute_activations(plan, {0}));
          auto& model = whole[{plan.stages(), plan.microbatches}];
          if (model.empty()) model = sequential(plan.stages(), plan.microbatches);
        },
        ranks, 8);
    CHECK(all.size() > 10);
    on_ranks(ranks, [&](thread_rank& me) {
      for (const schedule& plan : all) {
        me.at([&] { return std::string(plan.name()) + ", " + std::to_string(plan.microbatches) + " microbatches"; });
        compare_forgetful(me, plan, whole.at({plan.stages(), plan.microbatches}));
      }
    });
  }
}

TEST_CASE("a stage that cannot recompute its activations is rejected if the schedule requires it") {
  on_ranks(2, [](thread_rank& me) {
    const schedule plan = schedules::recompute_activations(schedules::gpipe(2, 3));
    keeping_stage own{me.rank()};
    const auto found = me.expect(errc::invalid_argument, [&] { pipeline::executor run(me.comm(), plan, {own}); });
    const std::string says = "stage " + std::to_string(me.rank()) + " lacks forget or recompute";
    me.check(found && std::string(found->what()).find(says) != std::string::npos, found ? found->what() : "");
  });
}

TEST_CASE("an exception of a stage in recompute or forget reaches every rank") {
  for (const bool forgetting : {false, true}) {
    struct failing_layer : forgetful_layer {
      using forgetful_layer::forgetful_layer;
      int forgets_badly_at = -1, fails_at = -1;
      void forget(int m) {
        if (m == forgets_badly_at) throw std::out_of_range("no such token");
        forgetful_layer::forget(m);
      }
      void recompute(int m, std::span<const double> in) {
        if (m == fails_at) throw std::out_of_range("no such token");
        forgetful_layer::recompute(m, in);
      }
    };
    on_ranks(3, [&](thread_rank& me) {
      const schedule plan = schedules::recompute_activations(schedules::gpipe(3, 4));
      std::vector<task> notes;
      kept of_rank;
      failing_layer own(me.rank(), 3, 4, notes, of_rank);
      if (me.rank() == 1) (forgetting ? own.forgets_badly_at : own.fails_at) = 2;
      const auto train = [&] {
        pipeline::executor run(me.comm(), plan, {own});
        run.run();
      };
      if (me.rank() != 1) {
        const auto found = me.expect(errc::aborted, train);
        const std::string says =
            std::string("stage 1 failed in 1") + (forgetting ? "F2" : "R2") + ", microbatch 2: no such token";
        me.check(found && std::string(found->what()).find(says) != std::string::npos, found ? found->what() : "");
        return;
      }
      bool thrown = false;
      try {
        train();
      } catch (const std::out_of_range&) {
        thrown = true;
      }
      me.check(thrown, "the exception did not reach the caller on its rank");
    });
  }
}
