// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: pass the root as hocket::root\{0\}, right before with
//
// A number without a type could be any argument.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  hocket::reduce(comm, in, out, std::plus<>{}, 2);
}
