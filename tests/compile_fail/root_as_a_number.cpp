// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: pass the root as hocket::root\{0\}
//
// A number without a type could be any argument.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  static_cast<void>(in);
  hocket::broadcast(comm, out, 0);
}
