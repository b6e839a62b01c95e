// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: in_place\(buffer\) replaces both in and out of all_reduce and reduce: pass it once
//
// One in_place buffer is both input and output.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, std::vector<float>& in, std::vector<float>& out) {
  hocket::all_reduce(comm, hocket::in_place(in), hocket::in_place(out));
}
