// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: gradients<T>.group, layout, when, stage. needs all of these
//
// The caller must choose the type of the sums.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  hocket::gradients(comm, layout, hocket::last_microbatch, hocket::zero<1>);
}
