// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a number was passed in place of the operation: the number of elements is that of the buffers
//
// MPI and NCCL take the number of elements.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, std::vector<float>& in, std::vector<float>& out) {
  hocket::all_reduce(comm, in, out, 3);
}
