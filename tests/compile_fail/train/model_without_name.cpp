// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the model needs name..
//
// A model without a name for the report and the logs.
#include <hocket/train.hpp>

#include <string>
#include <vector>

using namespace hocket::train;

void misuse(const number_samples& data) {
  struct incomplete {
    std::vector<model_parameter> parameters() const { return {{"a", 1}}; }
    double forward(const parameter_values&, const number_batch&) { return 0; }
    void backward(const parameter_values&, const number_batch&, const parameter_gradients&) {}
  };
  train_distributed(incomplete(), data);
}
