// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the model needs parameters.., which returns model_parameter for each array
//
// A model that states no parameters.
#include <hocket/train.hpp>

#include <string>
#include <vector>

using namespace hocket::train;

void misuse(const number_samples& data) {
  struct incomplete {
    std::string name() const { return "line"; }
    double forward(const parameter_values&, const number_batch&) { return 0; }
    void backward(const parameter_values&, const number_batch&, const parameter_gradients&) {}
  };
  train_distributed(incomplete(), data);
}
