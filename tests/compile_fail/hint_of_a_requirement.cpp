// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a requirement can't be a hint
//
// Ignored in silence, a requirement would be worth nothing.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  hocket::all_reduce(comm, in, out, std::plus<>{}, hocket::with(hocket::hint(hocket::require(hocket::checksummed))));
}
