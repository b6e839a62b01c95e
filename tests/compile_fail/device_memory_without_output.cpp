// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a buffer is missing
//
// One buffer for input and output must be passed as in_place(buffer).
#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, float* buffer, CUstream_st* stream) {
  hocket::all_reduce(comm, hocket::cuda::device(buffer, 3), std::plus<>{},
                     hocket::with(hocket::cuda::stream_ref(stream)));
}
