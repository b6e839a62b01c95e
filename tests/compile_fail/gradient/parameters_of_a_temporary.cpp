// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this communicator is a temporary
//
// At zero<3>, parameters need a separate communicator, but it must not be a temporary.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>
#include <hocket/optimizer/parameters.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  hocket::parameters<float>(hocket::split(comm, hocket::color{0}, hocket::key{0}), layout, hocket::zero<3>);
}
