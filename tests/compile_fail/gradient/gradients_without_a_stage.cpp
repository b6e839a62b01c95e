// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: gradients<T>.group, layout, when, stage. needs all of these
//
// The stage has no default, because it decides how much memory is needed.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  auto gradients = hocket::gradients<float>(comm, layout, hocket::last_microbatch);
  gradients.begin_microbatch(0, 1);
}
