// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Step 4: the same with ZeRO stage 1: each rank stores the optimizer's states of a quarter of the weights, updates
// these, and receives the others from the other ranks. One argument differs; the ledger shows what it saves.
// expect: 1536 bytes of states on rank 0 instead of 6144
#include "model.hpp"

#include <hocket/core/memory_ledger.hpp>
#include <hocket/parallel.hpp>

#include <cstdio>

using namespace tutorial;

int main() {
  hocket::local::run(4, [](auto comm) {
    const hocket::parameter_layout layout(
        {{"in 0", hidden * width}, {"out 0", hidden * width}, {"in 1", hidden * width}, {"out 1", hidden * width}});
    hocket::memory_ledger ledger;
    auto gradients = hocket::gradients<double>(comm, layout, hocket::last_microbatch, hocket::zero<1>);
    auto weights = hocket::parameters<double>(comm, layout, hocket::zero<1>);
    for (std::size_t i = 0; i < 4; ++i) weights.set(i, first_weights(i / 2, i % 2, 0, hidden));
    auto optimizer = hocket::make_optimizer<double>(weights, hocket::sgd{.momentum = 0}, ledger.account("states"));

    for (int step = 1; step <= steps; ++step) {
      for (int microbatch = 0; microbatch < 3; ++microbatch) {
        gradients.begin_microbatch(microbatch, 3);
        double loss = 0;
        int count = 0;
        for (int i = comm.rank() + microbatch * comm.size(); i < samples; i += 3 * comm.size(), ++count) {
          const vector x = sample(step, i);
          const vector middle = added(x, units(weights.of(0), weights.of(1), x));
          const vector y = added(middle, units(weights.of(2), weights.of(3), middle));
          vector dy{};
          loss += loss_of(y, wanted(x), dy);
          const vector dmiddle =
              added(dy, units_backward(weights.of(2), weights.of(3), middle, dy, gradients.of(2), gradients.of(3)));
          units_backward(weights.of(0), weights.of(1), x, dmiddle, gradients.of(0), gradients.of(1));
        }
        for (std::size_t i = 4; i-- > 0;) gradients.ready(i);
        gradients.end_microbatch(loss, count);
      }
      const auto totals = gradients.finish();
      optimizer.step(gradients, rate, 1 / totals.count);
      if (step % 50 == 0 && comm.rank() == 0) std::printf("step %d: loss %.6f\n", step, totals.loss / totals.count);
    }
    if (comm.rank() == 0) {
      std::printf("%zu bytes of states on rank 0 instead of %zu\n", ledger.bytes("states"),
                  layout.size() * sizeof(double));
    }
  });
}
