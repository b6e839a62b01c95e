// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the reduction operation must be callable as op\(a, b\)
//
// A reduction combines two elements into one.
#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, float* buffer, CUstream_st* stream) {
  hocket::all_reduce(
      comm, hocket::in_place(hocket::cuda::device(buffer, 3)), [](float a) { return a; },
      hocket::with(hocket::cuda::stream_ref(stream)));
}
