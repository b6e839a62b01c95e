// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a buffer that receives a result must be writable
//
// The output buffer is const.
#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, const float* in, CUstream_st* stream) {
  hocket::all_gather(comm, hocket::cuda::device(in, 3), hocket::cuda::device(in, 3),
                     hocket::with(hocket::cuda::stream_ref(stream)));
}
