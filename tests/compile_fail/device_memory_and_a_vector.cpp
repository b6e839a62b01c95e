// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: in and out must both be tagged buffers
//
// The wrong processor would read one of the two buffers.
#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, float* out, CUstream_st* stream) {
  hocket::all_reduce(comm, in, hocket::cuda::device(out, 3), std::plus<>{},
                     hocket::with(hocket::cuda::stream_ref(stream)));
}
