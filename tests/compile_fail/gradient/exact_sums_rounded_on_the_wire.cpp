// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: exact sums are sent unchanged
//
// A sum is not exact if it is rounded before it is sent.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  hocket::gradients<hocket::exact_sum<float>>(comm, layout, hocket::last_microbatch, hocket::zero<1>,
                                              hocket::with(hocket::wire<hocket::bfloat16>));
}
