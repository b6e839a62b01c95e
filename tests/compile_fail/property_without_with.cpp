// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: made by with
//
// A property must be passed to with(), which makes options of it.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  hocket::all_reduce(comm, in, out, std::plus<>{}, hocket::ring);
}
