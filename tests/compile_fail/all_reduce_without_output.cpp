// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: out is missing; use in_place
//
// One buffer for input and output must be passed as in_place(buffer).
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  static_cast<void>(in);
  hocket::all_reduce(comm, out);
}
