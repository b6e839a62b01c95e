// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: zero<0> stores the whole gradient: use every_microbatch
//
// Nothing is scattered where everything is kept.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  hocket::gradients<float>(comm, layout, hocket::scatter_every_reduce_last, hocket::zero<0>);
}
