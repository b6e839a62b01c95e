// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the reduction operation works on another type
//
// Each float would be truncated to an integer.
#include <hocket/hocket.hpp>

#include <functional>
#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  hocket::all_reduce(comm, in, out, std::plus<int>{});
}
