// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: too many arguments, or arguments in the wrong order: the call takes .communicator, in, out, operation
//
// Only the source location can follow the error code.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  std::error_code code;
  hocket::all_reduce(comm, in, out, std::plus<>{}, hocket::with(), code, 1);
}
