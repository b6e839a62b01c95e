// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the reduction operation must be trivially copyable
//
// The operation owns memory.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  const std::vector<float> table(3);
  hocket::all_reduce(comm, in, out, [table](float a, float b) { return a + b * table[0]; });
}
