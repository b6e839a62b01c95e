// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: pass the tag as hocket::tag\{7\}
//
// No argument before the options can be omitted.
#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, float* buffer, CUstream_st* stream) {
  hocket::send(comm, hocket::cuda::device(buffer, 3), hocket::peer{1}, hocket::with(hocket::cuda::stream_ref(stream)));
}
