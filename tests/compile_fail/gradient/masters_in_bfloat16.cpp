// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: F must be float or double: integers and narrow floats
//
// Steps that are small compared to the parameter would be lost.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>
#include <hocket/optimizer/optimizer.hpp>
#include <hocket/optimizer/rule/adamw.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  auto parameters = hocket::parameters<hocket::bfloat16>(comm, layout, hocket::zero<1>);
  hocket::make_optimizer<hocket::bfloat16>(parameters, hocket::adamw{});
}
