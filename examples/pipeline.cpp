// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Four threads, each a rank with one stage, learn to double numbers: each stage multiplies by its weight. The schedule is
// drawn, proven before anything runs, and run for 60 steps of 8 microbatches; with a file's name as argument, the last step is drawn
// there beside the plan.
// expect: after 60 steps the model maps 3 to 6\.00
#include <hocket/hocket.hpp>
#include <hocket/pipeline/executor.hpp>
#include <hocket/pipeline/measured.hpp>
#include <hocket/plan/pipeline/draw_comparison.hpp>
#include <hocket/plan/pipeline/draw_text.hpp>
#include <hocket/plan/pipeline/measured_costs.hpp>
#include <hocket/plan/pipeline/one_forward_one_backward.hpp>

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <functional>
#include <span>
#include <vector>

namespace schedules = hocket::plan::pipeline;

/// y = weight * x. The first stage makes its x itself, the last one compares its y with 2x.
struct multiply {
  using input_type = double;
  using output_type = double;
  bool first = false;
  bool last = false;
  double weight = 1;
  double gradient = 0;
  double outputs[8] = {};  // by microbatch

  std::size_t input_size() const { return first ? 0 : 1; }
  std::size_t output_size() const { return last ? 0 : 1; }

  static double example(int microbatch) { return 0.2 * microbatch - 0.7; }
  double input(int microbatch, std::span<const double> in) const { return first ? example(microbatch) : in[0]; }

  void forward(int microbatch, std::span<const double> in, std::span<double> out) {
    outputs[microbatch] = weight * input(microbatch, in);
    if (!last) out[0] = outputs[microbatch];
  }

  void backward(int microbatch, std::span<const double> in, std::span<const double> out_gradient,
                std::span<double> in_gradient) {
    const double error = last ? outputs[microbatch] - 2 * example(microbatch) : out_gradient[0];
    gradient += error * input(microbatch, in);
    if (!first) in_gradient[0] = error * weight;
  }
};

int main(int argc, char** argv) {
  constexpr int ranks = 4;
  static_assert(schedules::prove(schedules::one_forward_one_backward(ranks, 8)));
  std::fputs(schedules::draw_text(schedules::one_forward_one_backward(ranks, 8)).c_str(), stdout);

  hocket::local::run(ranks, [&](auto comm) {
    multiply stage{comm.rank() == 0, comm.rank() == ranks - 1};
    hocket::pipeline::executor pipeline(comm, schedules::one_forward_one_backward(ranks, 8), {stage});
    for (int step = 0; step < 60; ++step) {
      stage.gradient = 0;
      pipeline.run();
      stage.weight -= 0.05 * stage.gradient;
    }
    auto run = hocket::pipeline::gather_measured(comm, pipeline);
    for (auto& each : run) {  // from seconds to microseconds
      each.begin *= 1e6;
      each.end *= 1e6;
    }
    if (comm.rank() == 0 && argc > 1) {
      const auto planned = schedules::timeline_of(pipeline.plan(), schedules::measured_costs(pipeline.plan(), run));
      std::ofstream(argv[1]) << schedules::draw_comparison_svg(pipeline.plan(), planned, run, {.unit = "us"});
    }
    std::vector<double> product{stage.weight};
    hocket::all_reduce(comm, hocket::in_place(product), std::multiplies<>{});
    if (comm.rank() == 0) std::printf("after 60 steps the model maps 3 to %.2f\n", 3 * product[0]);
  });
}
