// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: wire<T>: fractions, or large integers, would be lost in this type
//
// Integers need fewer bytes, but 0.5 would become 0.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  hocket::all_reduce(comm, in, out, std::plus<>{}, hocket::with(hocket::wire<signed char>));
}
