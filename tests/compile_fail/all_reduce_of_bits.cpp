// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: vector<bool> stores bits, which can.{1,2}t be sent as elements
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<bool>& in, std::vector<bool>& out) {
  hocket::all_reduce(comm, in, out);
}
