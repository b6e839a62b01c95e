// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this call takes no buffers in memory of a device
//
// Staged calls need the host.
#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, float* buffer, CUstream_st* stream) {
  static_cast<void>(hocket::all_reduce_async(comm, hocket::in_place(hocket::cuda::device(buffer, 3)), std::plus<>{},
                                             hocket::with(hocket::cuda::stream_ref(stream))));
}
