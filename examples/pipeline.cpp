// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A pipeline: four threads, each a rank with one stage, learn to double numbers in 60 steps of 8 microbatches, with a
// published schedule. examples/own_schedule.cpp runs a schedule written by hand.
// expect: after 60 steps the model maps 0\.70 to 1\.40
#include <hocket/hocket.hpp>
#include <hocket/pipeline/executor.hpp>
#include <hocket/schedule/one_forward_one_backward.hpp>

#include <cstddef>
#include <cstdio>
#include <span>

/// y = weight * x. The first stage generates its x, the last one compares its y with 2x.
struct multiply {
  using input_type = double;
  using output_type = double;
  bool first, last;
  double weight = 1, gradient = 0;
  double outputs[8] = {};  // by microbatch

  std::size_t input_size() const { return first ? 0 : 1; }
  std::size_t output_size() const { return last ? 0 : 1; }
  static double example(int microbatch) { return 0.2 * microbatch - 0.7; }

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

int main() {
  hocket::local::run(4, [](auto comm) {
    multiply stage{comm.rank() == 0, comm.rank() == 3};
    hocket::pipeline::executor pipeline(comm, hocket::plan::pipeline::one_forward_one_backward(4, 8), {stage});
    for (int step = 0; step < 60; ++step) {
      stage.gradient = 0;
      pipeline.run();
      stage.weight -= 0.05 * stage.gradient;
    }
    if (stage.last) std::printf("after 60 steps the model maps %.2f to %.2f\n", stage.example(7), stage.outputs[7]);
  });
}
