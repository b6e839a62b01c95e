// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the operation comes before with
//
// A call with counts needs its operation too.
#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const float* in, float* out, CUstream_st* stream,
            const std::vector<std::size_t>& lengths) {
  hocket::reduce_scatter_v(comm, hocket::cuda::device(in, 9), hocket::cuda::device(out, 3), hocket::counts{lengths},
                           hocket::with(hocket::cuda::stream_ref(stream)));
}
