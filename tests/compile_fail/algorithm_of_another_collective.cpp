// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: gather has no such algorithm: it has flat, binomial and direct
//
// A ring would bring all blocks to all ranks.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  hocket::gather(comm, in, out, hocket::root{0}, hocket::with(hocket::ring));
}
