// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: pass the lengths of the ranks.{1,2} blocks as hocket::counts\{lengths\}
//
// Counts come before the root.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  hocket::gather_v(comm, in, out, hocket::root{0});
}
