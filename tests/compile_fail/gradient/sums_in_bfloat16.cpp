// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: T, the type of the sums, must be float
//
// Small summands would be lost; only the type that is sent may be narrow.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  hocket::gradients<hocket::bfloat16>(comm, layout, hocket::last_microbatch, hocket::zero<0>);
}
