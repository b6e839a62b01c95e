// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: in and out must have the same type of elements
//
// The input has floats, the output doubles.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  static_cast<void>(out);
  std::vector<double> sums(in.size());
  hocket::all_reduce(comm, in, sums);
}
