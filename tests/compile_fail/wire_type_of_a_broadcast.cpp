// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this operation combines nothing
//
// A broadcast forwards bytes unchanged, and can't use a wire type.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  static_cast<void>(in);
  hocket::broadcast(comm, out, hocket::root{0}, hocket::with(hocket::wire<hocket::bfloat16>));
}
