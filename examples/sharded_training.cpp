// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Four threads, each a rank, fit 256 lines through points. Each rank has different points, and a different number of
// them; the gradient is the sum over all points, divided once by their number. Each rank stores a quarter of the
// optimizer's momentum (ZeRO stage 1), and the bytes that it stores agree with the formula.
// expect: line 200: y = 2\.00 x \+ 1\.00 after 300 steps; 512 bytes of states on rank 0, by the formula 512
#include <hocket/core/memory_ledger.hpp>
#include <hocket/parallel.hpp>

#include <cstddef>
#include <cstdio>
#include <vector>

int main() {
  hocket::local::run(4, [](auto comm) {
    constexpr std::size_t lines = 256;  // line n is y = n / 100 x + 1
    const hocket::parameter_layout layout({{"slopes", lines}, {"offsets", lines}});
    hocket::memory_ledger ledger;
    auto gradients = hocket::gradients<float>(comm, layout, hocket::last_microbatch, hocket::zero<1>);
    auto parameters = hocket::parameters<float>(comm, layout, hocket::zero<1>);
    auto optimizer = hocket::make_optimizer<float>(parameters, hocket::sgd{.momentum = 0.9}, ledger.account("states"));

    for (int step = 0; step < 300; ++step) {
      for (int microbatch = 0; microbatch < 2; ++microbatch) {
        gradients.begin_microbatch(microbatch, 2);
        const int points = 3 + comm.rank() + microbatch;  // a different number on each rank
        double loss = 0;
        for (int i = 0; i < points; ++i) {
          const float x = static_cast<float>(i * 4 + comm.rank()) / 16;
          for (std::size_t line = 0; line < lines; ++line) {
            const float y = static_cast<float>(line) / 100 * x + 1;
            const float error = parameters.of(0)[line] * x + parameters.of(1)[line] - y;
            loss += 0.5 * error * error;
            gradients.of(0)[line] += error * x;
            gradients.of(1)[line] += error;
          }
        }
        gradients.ready(1);
        gradients.ready(0);
        gradients.end_microbatch(loss, points);  // sums and counts, never means
      }
      const hocket::gradient_totals totals = gradients.finish();
      optimizer.step(gradients, 0.1, 1 / totals.count);
    }

    const std::vector<std::size_t> buckets = {layout.bucket(0).size};
    const auto formula =
        hocket::bytes_of_training<float, float, float, hocket::sgd>(buckets, comm.rank(), comm.size(), hocket::zero<1>);
    const float slope = parameters.of(0)[200], offset = parameters.of(1)[200];
    if (comm.rank() != 0) return;
    std::printf("line 200: y = %.2f x + %.2f after 300 steps; %zu bytes of states on rank 0, by the formula %zu\n",
                slope, offset, ledger.bytes("states"), formula.states);
  });
}
