// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the model needs backward.parameter_values, batch, parameter_gradients., which adds the gradients
//
// A model that can be evaluated, and not trained.
#include <hocket/train.hpp>

#include <string>
#include <vector>

using namespace hocket::train;

void misuse(const number_samples& data) {
  struct incomplete {
    std::string name() const { return "line"; }
    std::vector<model_parameter> parameters() const { return {{"a", 1}}; }
    double forward(const parameter_values&, const number_batch&) { return 0; }
  };
  train_distributed(incomplete(), data);
}
