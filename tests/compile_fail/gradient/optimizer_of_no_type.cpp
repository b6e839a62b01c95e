// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: make_optimizer<F>.parameters, rule. needs all of these
//
// The parameters may have fewer digits than the type in which an optimizer computes.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>
#include <hocket/optimizer/optimizer.hpp>
#include <hocket/optimizer/rule/adamw.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  auto parameters = hocket::parameters<float>(comm, layout, hocket::zero<1>);
  auto optimizer = hocket::make_optimizer(parameters, hocket::adamw{});
  optimizer.steps();
}
