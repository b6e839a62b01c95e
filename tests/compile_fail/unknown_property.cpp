// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: with\(...\): not a property
//
// The number 5 is not a property.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  hocket::all_reduce(comm, in, out, std::plus<>{}, hocket::with(5));
}
