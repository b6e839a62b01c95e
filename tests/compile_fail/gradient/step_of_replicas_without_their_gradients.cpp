// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: replicas over which the gradients are not summed
//
// Each replica would take a step from the gradients of its own data only.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>
#include <hocket/optimizer/optimizer.hpp>
#include <hocket/optimizer/rule/sgd.hpp>

void misuse(const hocket::local::communicator& inside, const hocket::local::communicator& across,
            const hocket::parameter_layout& layout) {
  auto gradients = hocket::gradients<float>(inside, layout, hocket::every_microbatch, hocket::zero<2>);
  auto parameters = hocket::parameters<float>(hocket::hybrid(inside, across), layout, hocket::zero<2>);
  hocket::make_optimizer<float>(parameters, hocket::sgd{}).step(gradients, 0.1, 1);
}
