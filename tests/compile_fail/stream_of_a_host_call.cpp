// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: is valid only with tagged buffers
//
// Host memory is read immediately, independent of the stream.
#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, std::vector<float>& buffer, CUstream_st* stream) {
  hocket::all_reduce(comm, hocket::in_place(buffer), std::plus<>{}, hocket::with(hocket::cuda::stream_ref(stream)));
}
