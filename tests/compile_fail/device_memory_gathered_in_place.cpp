// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: only all_reduce and reduce take in_place\(buffer\)
//
// The root of a gather needs room for the blocks of all ranks.
#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, float* data, hocket::cuda::stream_ref stream) {
  const auto buffer = hocket::cuda::device(data, 4);
  hocket::gather(comm, hocket::in_place(buffer), hocket::root{0}, hocket::with(stream));
}
