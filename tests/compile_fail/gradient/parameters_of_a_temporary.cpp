// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this communicator is a temporary
//
// Parameters need a communicator of their own at zero<3>, but not one that is gone at once.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>
#include <hocket/optimizer/parameters.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  hocket::parameters<float>(hocket::split(comm, hocket::color{0}, hocket::key{0}), layout, hocket::zero<3>);
}
