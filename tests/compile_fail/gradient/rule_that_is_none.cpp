// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this is not an update rule: pass adamw\{\}, sgd\{\} or lion\{\}
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>
#include <hocket/optimizer/optimizer.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  auto parameters = hocket::parameters<float>(comm, layout, hocket::zero<1>);
  hocket::make_optimizer<float>(parameters, 0.1);
}
