// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A schedule written by hand, as a table: three stages on two ranks; rank 0 has the first and the last one. The program
// draws the schedule, proves it before anything runs, and runs it on two threads. If a file name is given, it draws the
// last step there beside the plan. A table with a mistake is rejected with the two actions that conflict.
// expect: rank 0, step 3 \(2F0\).*after 60 steps the model maps 3 to 6\.00
#include <hocket/draw/schedule_comparison.hpp>
#include <hocket/draw/schedule_text.hpp>
#include <hocket/hocket.hpp>
#include <hocket/pipeline/executor.hpp>
#include <hocket/pipeline/measured.hpp>
#include <hocket/schedule/measured_costs.hpp>
#include <hocket/schedule/text.hpp>

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace schedules = hocket::plan::pipeline;

constexpr const char* table = R"(
# schedule: both ends on rank 0
# placement: given 0,1,0
0F0,0F1,2F0,2B0,0F2,2F1,2B1,0B0,0F3,2F2,2B2,0B1,2F3,2B3,0B2,0B3
1F0,1F1,1B0,1F2,1B1,1F3,1B2,1B3
)";

/// y = weight * x. The first stage generates its x, the last one compares its y with 2x.
struct multiply {
  using input_type = double;
  using output_type = double;
  bool first, last;
  double weight = 1, gradient = 0;
  double outputs[4] = {};  // by microbatch

  std::size_t input_size() const { return first ? 0 : 1; }
  std::size_t output_size() const { return last ? 0 : 1; }
  static double example(int microbatch) { return 0.5 * microbatch - 0.8; }

  void forward(int m, std::span<const double> in, std::span<double> out) {
    outputs[m] = weight * (first ? example(m) : in[0]);
    if (!last) out[0] = outputs[m];
  }
  void backward(int m, std::span<const double> in, std::span<const double> out_gradient,
                std::span<double> in_gradient) {
    const double error = last ? outputs[m] - 2 * example(m) : out_gradient[0];
    gradient += error * (first ? example(m) : in[0]);
    if (!first) in_gradient[0] = error * weight;
  }
};

int main(int argc, char** argv) {
  const schedules::schedule plan = schedules::parse(table);
  std::fputs(schedules::draw_text(plan).c_str(), stdout);
  schedules::schedule mistaken = plan;
  std::swap(mistaken.of(0)[2], mistaken.of(0)[3]);  // 2B0 before 2F0
  std::printf("with two actions swapped: %s\n", schedules::prove(mistaken).message().c_str());
  if (!schedules::prove(plan)) return 1;  // the executor rejects it, too

  hocket::local::run(2, [&](auto comm) {
    multiply ends[] = {{true, false}, {false, true}};
    multiply middle{false, false};
    std::vector<multiply*> own;
    if (comm.rank() == 0) own = {&ends[0], &ends[1]};
    else own = {&middle};
    std::vector<hocket::pipeline::any_stage> stages;
    for (multiply* each : own) stages.emplace_back(*each);

    hocket::pipeline::executor pipeline(comm, plan, stages);
    for (int step = 0; step < 60; ++step) {
      for (multiply* each : own) each->gradient = 0;
      pipeline.run();
      for (multiply* each : own) each->weight -= 0.05 * each->gradient;
    }
    std::vector<double> product{own.front()->weight * (own.size() == 2 ? own.back()->weight : 1)};
    hocket::all_reduce(comm, hocket::in_place(product), std::multiplies<>{});
    auto run = hocket::pipeline::gather_measured(comm, pipeline);
    if (comm.rank() != 0) return;
    std::printf("after 60 steps the model maps 3 to %.2f\n", 3 * product[0]);
    if (argc < 2) return;
    for (auto& each : run) {  // from seconds to microseconds
      each.begin *= 1e6;
      each.end *= 1e6;
    }
    const auto planned = schedules::timeline_of(pipeline.plan(), schedules::measured_costs(pipeline.plan(), run));
    std::ofstream(argv[1]) << schedules::draw_comparison_svg(pipeline.plan(), planned, run, {.unit = "us"});
  });
}
