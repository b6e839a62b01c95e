// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: pass the other rank as hocket::peer\{1\}
//
// Each buffer must be followed by its peer.
#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, const float* out, float* in, CUstream_st* stream) {
  hocket::send_recv(comm, hocket::cuda::device(out, 3), hocket::cuda::device(in, 3), hocket::peer{1}, hocket::peer{1},
                    hocket::tag{7}, hocket::with(hocket::cuda::stream_ref(stream)));
}
