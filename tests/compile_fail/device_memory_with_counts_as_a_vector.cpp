// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: blocks as hocket::counts\{lengths\}
//
// A vector without a tag could be any argument.
#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, float* in, float* out, CUstream_st* stream,
            const std::vector<std::size_t>& lengths) {
  hocket::all_gather_v(comm, hocket::cuda::device(in, 3), hocket::cuda::device(out, 9), lengths,
                       hocket::with(hocket::cuda::stream_ref(stream)));
}
