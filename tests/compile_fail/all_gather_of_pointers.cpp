// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: elements must not be pointers
//
// An address is invalid on another rank.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  static_cast<void>(in);
  static_cast<void>(out);
  std::vector<int*> own(1);
  std::vector<int*> all(4);
  hocket::all_gather(comm, own, all);
}
