// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: is valid only with tagged buffers
//
// The tag of the buffer is missing, and the CPU would read device memory.
#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>

#include <chrono>
#include <span>

void misuse(const hocket::local::communicator& comm, std::span<const float> buffer, CUstream_st* stream) {
  hocket::send(comm, buffer, hocket::peer{1}, hocket::tag{7},
               hocket::with(hocket::cuda::stream_ref(stream), hocket::timeout(std::chrono::seconds(1))));
}
