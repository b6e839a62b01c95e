// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Step 6: three axes, eight ranks. Along "pp" the first rank has block 0, the second block 1; a schedule determines
// when each microbatch is computed, and the executor moves activations and gradients between the two.
// expect: step 200: loss 0\.104380
#include "model.hpp"

#include <hocket/parallel.hpp>
#include <hocket/pipeline/executor.hpp>
#include <hocket/schedule/one_forward_one_backward.hpp>

#include <cstdio>

using namespace tutorial;

constexpr int microbatches = 3;

/// A block with this rank's hidden units; `over_units` sums over the ranks that have the other units.
template <class Weights, class Gradients, class OverUnits>
struct block {
  using input_type = vector;
  using output_type = vector;
  bool first;  // true: block 0, which draws the samples; false: block 1, which computes the loss
  int data_rank, data_ranks;
  Weights& weights;
  Gradients& gradients;
  OverUnits over_units;
  int step = 0;
  double loss = 0;
  std::vector<vector> loss_gradients[microbatches] = {};

  std::size_t count() const { return static_cast<std::size_t>(samples / microbatches / data_ranks); }
  std::size_t input_size() const { return first ? 0 : count(); }
  std::size_t output_size() const { return first ? count() : 0; }
  vector drawn(int microbatch, std::size_t i) const {
    return sample(step, data_rank + (microbatch + microbatches * static_cast<int>(i)) * data_ranks);
  }

  void forward(int microbatch, std::span<const vector> in, std::span<vector> out) {
    loss_gradients[microbatch].resize(count());
    for (std::size_t i = 0; i < count(); ++i) {
      const vector x = first ? drawn(microbatch, i) : in[i];
      const vector y = added(x, over_units(units(weights.of(0), weights.of(1), x)));
      if (first) {
        out[i] = y;
      } else {
        loss += loss_of(y, wanted(drawn(microbatch, i)), loss_gradients[microbatch][i]);
      }
    }
  }

  void backward(int microbatch, std::span<const vector> in, std::span<const vector> out_gradient,
                std::span<vector> in_gradient) {
    for (std::size_t i = 0; i < count(); ++i) {
      const vector x = first ? drawn(microbatch, i) : in[i];
      const vector dy = first ? out_gradient[i] : loss_gradients[microbatch][i];
      const vector dx = units_backward(weights.of(0), weights.of(1), x, dy, gradients.of(0), gradients.of(1));
      if (!first) in_gradient[i] = added(dy, over_units(dx));
    }
  }
};

int main() {
  hocket::local::run(8, [](auto comm) {
    const auto ranks = hocket::mesh<"dp", "pp", "tp">(comm, {2, 2, 2});
    const auto& data = ranks.template along<"dp">();
    const auto& tensor = ranks.template along<"tp">();
    const auto& pipeline = ranks.template along<"pp">();
    const auto over_units = [&](vector part) {
      hocket::all_reduce(tensor, hocket::in_place(part));
      return part;
    };
    constexpr std::size_t slice = hidden / 2;
    const std::size_t first = slice * static_cast<std::size_t>(tensor.rank());
    const auto number = static_cast<std::size_t>(pipeline.rank());
    const hocket::parameter_layout layout({{"in", slice * width}, {"out", slice * width}});
    auto gradients = hocket::gradients<double>(data, layout, hocket::last_microbatch, hocket::zero<1>);
    auto weights = hocket::parameters<double>(data, layout, hocket::zero<1>);
    for (std::size_t i = 0; i < 2; ++i) weights.set(i, first_weights(number, i, first, slice));
    auto optimizer = hocket::make_optimizer<double>(weights, hocket::sgd{.momentum = 0});
    block<decltype(weights), decltype(gradients), decltype(over_units)> mine{number == 0, data.rank(), data.size(),
                                                                             weights,     gradients,   over_units};
    hocket::pipeline::executor executor(
        pipeline, hocket::plan::pipeline::one_forward_one_backward(pipeline.size(), microbatches), {mine});

    for (int step = 1; step <= steps; ++step) {
      gradients.begin_microbatch(0, 1);  // the schedule's microbatches: the executor runs them, interleaved
      mine.step = step;
      mine.loss = 0;
      executor.run();
      for (std::size_t i = 2; i-- > 0;) gradients.ready(i);
      gradients.end_microbatch(mine.loss, samples / data.size());
      const auto totals = gradients.finish();
      optimizer.step(gradients, rate, 1 / totals.count);
      if (step % 50 == 0 && ranks.rank() == 2) std::printf("step %d: loss %.6f\n", step, totals.loss / totals.count);
    }
  });
}
