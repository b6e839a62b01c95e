// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the reduction operation must be callable as op\(a, b\)
//
// The operation takes one operand.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  hocket::all_reduce(comm, in, out, [](float x) { return -x; });
}
