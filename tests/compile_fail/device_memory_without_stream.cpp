// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: there is no default stream
//
// Without a stream, it is undefined when the memory is read.
#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, float* in, float* out) {
  hocket::all_reduce(comm, hocket::cuda::device(in, 3), hocket::cuda::device(out, 3));
}
