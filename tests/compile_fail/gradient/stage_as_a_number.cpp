// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the sharding stage must be zero<0>, zero<1>, zero<2> or zero<3>
//
// A stage is a type, so that the compiler knows what it allows.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  hocket::gradients<float>(comm, layout, hocket::last_microbatch, 1);
}
