// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the reduction operation works on another type
//
// Half of everything: the factor would be cut to 0.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<int>& in, std::vector<int>& out) {
  hocket::all_reduce(comm, in, out, hocket::scaled_sum<double>{0.5});
}
