// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this operation combines nothing, so it takes only an algorithm
//
// A barrier sends no elements.
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm) {
  hocket::barrier(comm, hocket::with(hocket::wire<hocket::bfloat16>));
}
