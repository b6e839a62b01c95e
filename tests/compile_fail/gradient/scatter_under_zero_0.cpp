// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: zero<0> stores the whole gradient: use every_microbatch
//
// Gradients are not scattered if each rank stores the whole gradient.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  hocket::gradients<float>(comm, layout, hocket::scatter_every_reduce_last, hocket::zero<0>);
}
