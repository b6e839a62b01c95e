// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: for one value x, pass std::span\(&x, 1\)
//
// A number is not a buffer, and has no size.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm) {
  double loss = 1;
  hocket::all_reduce(comm, hocket::in_place(loss));
}
