// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a buffer must be a contiguous range
//
// A number is not a buffer; a vector of one number is.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  static_cast<void>(in);
  static_cast<void>(out);
  float loss = 1;
  hocket::all_reduce(comm, loss, loss);
}
