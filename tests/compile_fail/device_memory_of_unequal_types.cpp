// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: in and out must have the same type of elements
//
// It is undefined which of the two types is summed.
#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, const float* in, double* out, CUstream_st* stream) {
  hocket::all_reduce(comm, hocket::cuda::device(in, 3), hocket::cuda::device(out, 3), std::plus<>{},
                     hocket::with(hocket::cuda::stream_ref(stream)));
}
