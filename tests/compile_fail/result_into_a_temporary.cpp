// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a buffer that receives a result is a temporary
//
// The result would be lost without an error.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, std::vector<float>& in, std::vector<float>& out) {
  hocket::all_reduce(comm, in, std::vector<float>(out.size()));
}
