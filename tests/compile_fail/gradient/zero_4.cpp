// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the sharding stages are 0 .nothing is sharded., 1 .optimizer states., 2 .and gradients. and 3
// alone: the compiler names no line of this file, only that of the variable template zero
//
// There are four stages, from 0 to 3.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  hocket::gradients<float>(comm, layout, hocket::every_microbatch, hocket::zero<4>);
}
