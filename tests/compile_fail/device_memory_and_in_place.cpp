// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: in_place\(buffer\) replaces both in and out of all_reduce and reduce: pass it once
//
// An in_place buffer is both input and output.
#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, float* data, hocket::cuda::stream_ref stream) {
  const auto buffer = hocket::cuda::device(data, 4);
  hocket::reduce(comm, buffer, hocket::in_place(buffer), std::plus<>{}, hocket::root{0}, hocket::with(stream));
}
