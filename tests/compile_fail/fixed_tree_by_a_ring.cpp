// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: require\(fixed_tree\): this algorithm combines in another order than the fixed tree: use recursive_doubling, .* or push, or
//
// In a ring, each chunk is combined from another rank on.
#include <hocket/hocket.hpp>

#include <vector>

void sum(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  hocket::all_reduce(comm, in, out, std::plus<>{}, hocket::with(hocket::require(hocket::fixed_tree), hocket::ring));
}
