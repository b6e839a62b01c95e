// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this communicator is a temporary
//
// The accumulator would store the address of a temporary, and use it in the first step.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  hocket::gradients<float>(hocket::split(comm, hocket::color{0}, hocket::key{0}), layout, hocket::last_microbatch,
                           hocket::zero<1>);
}
