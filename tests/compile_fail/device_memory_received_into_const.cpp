// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: must be writable
//
// The message would be written to a const buffer.
#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, const double* buffer, CUstream_st* stream) {
  hocket::recv(comm, hocket::cuda::device(buffer, 3), hocket::peer{1}, hocket::tag{7},
               hocket::with(hocket::cuda::stream_ref(stream)));
}
