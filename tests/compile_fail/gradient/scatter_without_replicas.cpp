// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: reduces over replicas at the end, but this group has none
//
// There is one copy of the model, so that the last reduction has no ranks to reduce over.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  hocket::gradients<float>(comm, layout, hocket::scatter_every_reduce_last, hocket::zero<2>);
}
