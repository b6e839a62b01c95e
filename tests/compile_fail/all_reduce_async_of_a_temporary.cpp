// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a buffer of an _async call is a temporary
//
// The call returns immediately, and the temporary is destroyed before it is read.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, std::vector<float>& out) {
  hocket::request pending = hocket::all_reduce_async(comm, std::vector<float>(8, 1.0F), out);
  pending.wait();
}
