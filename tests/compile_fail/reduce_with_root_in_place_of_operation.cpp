// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the operation comes before the root: pass std::plus<>\{\} for a sum
//
// The operation can be omitted only if all that follows is omitted too.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  hocket::reduce(comm, in, out, hocket::root{2});
}
