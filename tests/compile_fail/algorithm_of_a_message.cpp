// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a message takes only a timeout and a stop token
//
// Messages have no algorithm.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  static_cast<void>(out);
  hocket::send(comm, in, hocket::peer{1}, hocket::tag{0}, hocket::with(hocket::ring));
}
