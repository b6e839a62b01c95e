// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a buffer must be a contiguous range
//
// The elements of a list are not contiguous.
#include <hocket/hocket.hpp>

#include <vector>

#include <list>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  static_cast<void>(in);
  std::list<float> scattered(3);
  hocket::all_reduce(comm, scattered, out);
}
