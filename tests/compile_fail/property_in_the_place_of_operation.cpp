// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: are options, made by with....., and come after the operation
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  hocket::all_reduce(comm, in, out, hocket::ring);
}
