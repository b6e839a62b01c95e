// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: needs the stream that orders its reads and writes
//
// The other options do not specify in which order the memory is read.
#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, float* buffer) {
  hocket::broadcast(comm, hocket::cuda::device(buffer, 3), hocket::root{0},
                    hocket::with(hocket::timeout(std::chrono::seconds(1))));
}
