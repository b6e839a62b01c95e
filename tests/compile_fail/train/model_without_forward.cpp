// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the model needs forward.parameter_values, batch., which returns the sum of the samples' losses
//
// A model whose gradients have no loss.
#include <hocket/train.hpp>

#include <string>
#include <vector>

using namespace hocket::train;

void misuse(const number_samples& data) {
  struct incomplete {
    std::string name() const { return "line"; }
    std::vector<model_parameter> parameters() const { return {{"a", 1}}; }
    void backward(const parameter_values&, const number_batch&, const parameter_gradients&) {}
  };
  train_distributed(incomplete(), data);
}
