// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: parameters<P>.group, layout, stage. needs all of these
#include <hocket/hocket.hpp>
#include <hocket/optimizer/parameters.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  auto parameters = hocket::parameters<float>(comm, layout);
  parameters.gather(0);
}
