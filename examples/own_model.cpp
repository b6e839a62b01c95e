// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A user-defined model, which learns a line from points on eight nodes.
// expect: line: y = 2\.00 x \+ 1\.00
#include <hocket/train.hpp>

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

struct line {  // y = a x + b
  std::string name() const { return "line"; }
  std::vector<hocket::train::model_parameter> parameters() const { return {{"a", 1, 0.1}, {"b", 1}}; }

  // Returns the sum of the losses of a batch: of each sample, half the square of the error.
  double forward(const hocket::train::parameter_values& w, const hocket::train::number_batch& in) {
    errors.assign(in.count, 0);
    double sum = 0;
    for (std::size_t i = 0; i < in.count; ++i) {
      errors[i] = static_cast<double>(w[0][0] * in.features[i] + w[1][0] - in.targets[i]);
      sum += errors[i] * errors[i] / 2;
    }
    return sum;
  }

  // Adds the gradients of that sum.
  void backward(const hocket::train::parameter_values&, const hocket::train::number_batch& in,
                const hocket::train::parameter_gradients& to) {
    for (std::size_t i = 0; i < in.count; ++i) {
      to[0][0] += errors[i] * static_cast<double>(in.features[i]);
      to[1][0] += errors[i];
    }
  }

  std::vector<double> errors;  // of the samples of the last batch
};

int main() {
  std::vector<float> x, y;
  for (int i = 0; i < 1000; ++i) {
    x.push_back(static_cast<float>(i % 100) / 50 - 1);
    y.push_back(2 * x.back() + 1);
  }
  const hocket::train::number_samples data(x, 1, y, 1);
  const auto found = hocket::train::train_distributed(line(), data, hocket::train::nodes{8},
                                                      {.batch = 20, .epochs = 20, .learning_rate = 0.02});
  std::printf("line: y = %.2f x + %.2f\n", found.parameters[0], found.parameters[1]);
}
