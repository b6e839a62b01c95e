// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the std::error_code must be the last argument, and no argument before it can be omitted
//
// The arguments before the error code can't be omitted.
#include <hocket/hocket.hpp>

#include <system_error>
#include <vector>

void misuse(const hocket::local::communicator& comm, std::vector<float>& in, std::vector<float>& out) {
  std::error_code code;
  hocket::all_reduce(comm, in, out, std::plus<>{}, code);
}
