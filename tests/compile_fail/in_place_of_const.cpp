// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the result overwrites the buffer
//
// A const buffer can't receive the result.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in) {
  hocket::all_reduce(comm, hocket::in_place(in));
}
