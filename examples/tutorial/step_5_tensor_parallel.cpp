// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Step 5: two axes. Along "tp" each rank has half of every block's hidden units, and the sum over the two ranks is the
// block's; along "dp" two such pairs have different samples. The communication of steps 2 to 4 uses only "dp".
// expect: step 200: loss 0\.104380
#include "model.hpp"

#include <hocket/parallel.hpp>

#include <cstdio>

using namespace tutorial;

int main() {
  hocket::local::run(4, [](auto comm) {
    const auto ranks = hocket::mesh<"dp", "tp">(comm, {2, 2});
    const auto& data = ranks.template along<"dp">();
    const auto& tensor = ranks.template along<"tp">();
    const auto over_units = [&](vector part) {
      hocket::all_reduce(tensor, hocket::in_place(part));
      return part;
    };
    constexpr std::size_t slice = hidden / 2;
    const std::size_t first = slice * static_cast<std::size_t>(tensor.rank());
    const hocket::parameter_layout layout(
        {{"in 0", slice * width}, {"out 0", slice * width}, {"in 1", slice * width}, {"out 1", slice * width}});
    auto gradients = hocket::gradients<double>(data, layout, hocket::last_microbatch, hocket::zero<1>);
    auto weights = hocket::parameters<double>(data, layout, hocket::zero<1>);
    for (std::size_t i = 0; i < 4; ++i) weights.set(i, first_weights(i / 2, i % 2, first, slice));
    auto optimizer = hocket::make_optimizer<double>(weights, hocket::sgd{.momentum = 0});

    for (int step = 1; step <= steps; ++step) {
      for (int microbatch = 0; microbatch < 3; ++microbatch) {
        gradients.begin_microbatch(microbatch, 3);
        double loss = 0;
        int count = 0;
        for (int i = data.rank() + microbatch * data.size(); i < samples; i += 3 * data.size(), ++count) {
          const vector x = sample(step, i);
          const vector middle = added(x, over_units(units(weights.of(0), weights.of(1), x)));
          const vector y = added(middle, over_units(units(weights.of(2), weights.of(3), middle)));
          vector dy{};
          loss += loss_of(y, wanted(x), dy);
          const vector dmiddle = added(dy, over_units(units_backward(weights.of(2), weights.of(3), middle, dy,
                                                                     gradients.of(2), gradients.of(3))));
          units_backward(weights.of(0), weights.of(1), x, dmiddle, gradients.of(0), gradients.of(1));
        }
        for (std::size_t i = 4; i-- > 0;) gradients.ready(i);
        gradients.end_microbatch(loss, count);
      }
      const auto totals = gradients.finish();
      optimizer.step(gradients, rate, 1 / totals.count);
      if (step % 50 == 0 && comm.rank() == 0) std::printf("step %d: loss %.6f\n", step, totals.loss / totals.count);
    }
  });
}
