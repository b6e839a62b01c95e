// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: in and out must both be tagged buffers
//
// Host memory must be passed as cuda::pinned.
#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const float* out, std::vector<float>& in, CUstream_st* stream) {
  hocket::send_recv(comm, hocket::cuda::device(out, 3), hocket::peer{1}, in, hocket::peer{1}, hocket::tag{7},
                    hocket::with(hocket::cuda::stream_ref(stream)));
}
