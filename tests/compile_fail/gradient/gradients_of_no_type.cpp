// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: gradients<T>.group, layout, when, stage. needs all of these
//
// In what sums are kept is for the caller to say.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  hocket::gradients(comm, layout, hocket::last_microbatch, hocket::zero<1>);
}
