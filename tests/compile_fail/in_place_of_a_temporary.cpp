// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the buffer is a temporary
//
// The caller could not read the result.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm) {
  hocket::all_reduce(comm, hocket::in_place(std::vector<float>(3)));
}
