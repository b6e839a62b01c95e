// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the operation comes before with
//
// Options are the last argument, even if the operation is the default.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  hocket::all_reduce(comm, in, out, hocket::with(hocket::ring));
}
