// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: broadcast has no such algorithm: it has binomial and direct
//
// A broadcast has binomial and direct.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, std::vector<float>& values) {
  hocket::broadcast(comm, values, hocket::root{0}, hocket::with(hocket::ring));
}
