// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: pass the other rank as hocket::peer\{1\}
//
// A number without a type could be any argument.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  static_cast<void>(out);
  hocket::send(comm, in, 1);
}
