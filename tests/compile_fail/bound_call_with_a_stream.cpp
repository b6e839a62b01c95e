// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: made by with
//
// enqueue puts a bound call on a stream.
#include <hocket/group/peers.hpp>
#include <hocket/hocket.hpp>

struct no_kernels {};
using ranks = hocket::cuda::peers_of<hocket::local::domain, hocket::cuda_ipc::driver, no_kernels>;

void misuse(ranks& peers, const float* in, float* out, CUstream_st* stream) {
  auto sum = peers.reduce_scatter(hocket::cuda::device(in, 6), hocket::cuda::device(out, 3), std::plus<>{}, stream);
}
