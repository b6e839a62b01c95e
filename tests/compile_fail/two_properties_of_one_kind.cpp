// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: two properties have the same kind
//
// The call can use the ring or the one-shot algorithm, not both.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  hocket::all_reduce(comm, in, out, std::plus<>{}, hocket::with(hocket::ring, hocket::one_shot));
}
