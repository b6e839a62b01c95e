// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: optimizer::step.gradients, learning_rate, factor. needs all of these
//
// Gradients are sums; only the factor can divide them.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>
#include <hocket/optimizer/optimizer.hpp>
#include <hocket/optimizer/rule/sgd.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  auto gradients = hocket::gradients<float>(comm, layout, hocket::last_microbatch, hocket::zero<1>);
  auto parameters = hocket::parameters<float>(comm, layout, hocket::zero<1>);
  hocket::make_optimizer<float>(parameters, hocket::sgd{}).step(gradients, 0.1);
}
