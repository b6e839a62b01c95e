// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a requirement can't be a hint
//
// A requirement that may be ignored silently would have no effect.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  hocket::all_reduce(comm, in, out, std::plus<>{}, hocket::with(hocket::hint(hocket::require(hocket::checksummed))));
}
