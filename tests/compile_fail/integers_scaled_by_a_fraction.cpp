// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the reduction operation works on another type
//
// The factor 0.5 would be truncated to 0.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<int>& in, std::vector<int>& out) {
  hocket::all_reduce(comm, in, out, hocket::scaled_sum<double>{0.5});
}
