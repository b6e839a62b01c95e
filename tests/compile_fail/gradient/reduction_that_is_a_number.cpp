// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the argument after the options must be a reduction
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  hocket::gradients<float>(comm, layout, hocket::last_microbatch, hocket::zero<0>, hocket::with(hocket::ring), 2);
}
