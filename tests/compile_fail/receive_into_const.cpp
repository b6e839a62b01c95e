// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a buffer that receives a result must be writable
//
// The message has nowhere to go.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<int>& in, std::vector<int>& out) {
  static_cast<void>(out);
  hocket::recv(comm, in, hocket::peer{1});
}
