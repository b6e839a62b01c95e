// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the operation comes before with\(\.\.\.\)
//
// Options are the last argument.
#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, float* in, float* out, CUstream_st* stream) {
  hocket::all_reduce(comm, hocket::cuda::device(in, 3), hocket::cuda::device(out, 3),
                     hocket::with(hocket::cuda::stream_ref(stream), hocket::two_shot));
}
