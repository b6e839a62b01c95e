// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a buffer that receives a result must be writable
//
// The output buffer is const.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<double>& in, std::vector<double>& out) {
  static_cast<void>(out);
  hocket::all_reduce(comm, in, in);
}
