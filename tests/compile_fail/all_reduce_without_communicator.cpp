// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the first argument must be a communicator
//
// The communicator is missing.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  static_cast<void>(comm);
  hocket::all_reduce(in, out);
}
