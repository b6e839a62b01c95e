// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a buffer that receives a result must be writable
//
// The buffer that receives the message is const.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<int>& in, std::vector<int>& out) {
  static_cast<void>(out);
  hocket::recv(comm, in, hocket::peer{1});
}
