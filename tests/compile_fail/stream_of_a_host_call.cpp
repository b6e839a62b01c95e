// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: is valid only with tagged buffers
//
// The host's memory is read at once, whatever a stream does.
#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, std::vector<float>& buffer, CUstream_st* stream) {
  hocket::all_reduce(comm, hocket::in_place(buffer), std::plus<>{}, hocket::with(hocket::cuda::stream_ref(stream)));
}
