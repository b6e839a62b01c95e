// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: last_microbatch needs the whole gradient until the last microbatch
//
// Accumulation without a reduction needs the whole gradient.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  hocket::gradients<float>(comm, layout, hocket::last_microbatch, hocket::zero<3>);
}
