// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this collective has no such algorithm
//
// The broadcast has no ring algorithm.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  static_cast<void>(in);
  hocket::broadcast(comm, out, hocket::root{0}, hocket::with(hocket::ring));
}
