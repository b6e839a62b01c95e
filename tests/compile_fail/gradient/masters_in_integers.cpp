// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: F must be float or double: integers and narrow floats
//
// Steps below 1 would be lost, and the parameters would not change.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>
#include <hocket/optimizer/optimizer.hpp>
#include <hocket/optimizer/rule/sgd.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  auto parameters = hocket::parameters<double>(comm, layout, hocket::zero<1>);
  hocket::make_optimizer<long>(parameters, hocket::sgd{});
}
