// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: zero<1> stores the whole gradient
//
// If each microbatch is reduced, no rank needs the whole gradient.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  hocket::gradients<float>(comm, layout, hocket::every_microbatch, hocket::zero<1>);
}
