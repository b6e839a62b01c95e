// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the parameters have more digits than F
//
// Each step would round the parameters to the type of the optimizer's copy.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>
#include <hocket/optimizer/optimizer.hpp>
#include <hocket/optimizer/rule/sgd.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  auto parameters = hocket::parameters<double>(comm, layout, hocket::zero<1>);
  hocket::make_optimizer<float>(parameters, hocket::sgd{});
}
