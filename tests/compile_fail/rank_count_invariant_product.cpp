// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: require\(rank_count_invariant\): no way
//
// A product of floats is rounded in each step.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  hocket::all_reduce(comm, in, out, std::multiplies<>{}, hocket::with(hocket::require(hocket::rank_count_invariant)));
}
