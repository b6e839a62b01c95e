// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the std::error_code comes last, and nothing before it can be left out
//
// What comes before the error code can't be left out.
#include <hocket/hocket.hpp>

#include <system_error>
#include <vector>

void misuse(const hocket::local::communicator& comm, std::vector<float>& in, std::vector<float>& out) {
  std::error_code code;
  hocket::all_reduce(comm, in, out, std::plus<>{}, code);
}
