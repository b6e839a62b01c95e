// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: there is no default stream
//
// Without a stream, it is undefined when the memory is read.
#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, float* buffer) {
  hocket::send(comm, hocket::cuda::device(buffer, 3), hocket::peer{1}, hocket::tag{7});
}
