// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this call takes no buffers in memory of a device
//
// The processor can't read it.
#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, float* buffer) {
  hocket::send(comm, hocket::cuda::device(buffer, 3), hocket::peer{1});
}
