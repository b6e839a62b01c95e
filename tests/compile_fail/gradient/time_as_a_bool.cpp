// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the reduction time must be last_microbatch, every_microbatch or
//
// The reduction time must be passed by name.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  hocket::gradients<float>(comm, layout, true, hocket::zero<1>);
}
