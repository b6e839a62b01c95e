// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: pass the root as hocket::root\{0\}
//
// A number without a type could be any argument.
#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, float* buffer, CUstream_st* stream) {
  hocket::broadcast(comm, hocket::cuda::device(buffer, 3), 0, hocket::with(hocket::cuda::stream_ref(stream)));
}
