// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a buffer must have a size, and a pointer has none: pass std::span\(pointer, count\)
//
// MPI and NCCL take pointers.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, std::vector<float>& in, std::vector<float>& out) {
  hocket::all_reduce(comm, in.data(), out.data());
}
