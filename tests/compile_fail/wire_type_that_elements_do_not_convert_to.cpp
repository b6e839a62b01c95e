// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: wire<T>: elements can't be converted to this type and back
//
// A pair is no narrower float.
#include <hocket/hocket.hpp>

#include <vector>

struct pair_of_floats {
  float first, second;
};

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  hocket::all_reduce(comm, in, out, std::plus<>{}, hocket::with(hocket::wire<pair_of_floats>));
}
