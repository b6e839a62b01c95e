// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: combines operands in another order than that of the ranks.*recursive_halving, pairwise or direct, which
//
// A lambda is not known to be commutative, and a ring changes the order of operands.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  hocket::reduce_scatter(
      comm, in, out, [](float a, float b) { return a - b; }, hocket::with(hocket::ring));
}
