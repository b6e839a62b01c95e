// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: use zero<2>, which needs less memory
//
// If gradients are scattered, no rank needs the whole gradient.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  hocket::gradients<float>(comm, layout, hocket::scatter_every_reduce_last, hocket::zero<1>);
}
