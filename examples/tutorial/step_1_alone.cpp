// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Step 1: a training loop in one thread. The gradient of the sum of the losses is divided by their number at the end.
// expect: step 200: loss 0\.104380
#include "model.hpp"

#include <cstdio>

using namespace tutorial;

int main() {
  std::vector<double> weights[4], gradients[4];  // in and out of block 0, in and out of block 1
  for (std::size_t i = 0; i < 4; ++i) weights[i] = first_weights(i / 2, i % 2, 0, hidden);

  for (int step = 1; step <= steps; ++step) {
    for (auto& each : gradients) each.assign(hidden * width, 0);
    double loss = 0;
    for (int i = 0; i < samples; ++i) {
      const vector x = sample(step, i);
      const vector middle = added(x, units(weights[0], weights[1], x));
      const vector y = added(middle, units(weights[2], weights[3], middle));
      vector dy{};
      loss += loss_of(y, wanted(x), dy);
      const vector dmiddle = added(dy, units_backward(weights[2], weights[3], middle, dy, gradients[2], gradients[3]));
      units_backward(weights[0], weights[1], x, dmiddle, gradients[0], gradients[1]);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t k = 0; k < weights[i].size(); ++k) weights[i][k] -= rate * gradients[i][k] / samples;
    }
    if (step % 50 == 0) std::printf("step %d: loss %.6f\n", step, loss / samples);
  }
}
