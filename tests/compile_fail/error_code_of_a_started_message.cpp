// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: an _async form takes no std::error_code
//
// A request reports its error when the caller waits for it.
#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, const float* buffer, CUstream_st* stream, std::error_code& code) {
  auto started = hocket::send_async(comm, hocket::cuda::device(buffer, 3), hocket::peer{1}, hocket::tag{7},
                                    hocket::with(hocket::cuda::stream_ref(stream)), code);
}
