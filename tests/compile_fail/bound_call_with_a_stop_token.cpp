// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a bound call takes only an algorithm, an exactness and a timeout
//
// No host waits that could be stopped.
#include <hocket/group/peers.hpp>
#include <hocket/hocket.hpp>

#include <stop_token>

struct no_kernels {};
using ranks = hocket::cuda::peers_of<hocket::local::domain, hocket::cuda_ipc::driver, no_kernels>;

void misuse(ranks& peers, const float* in, float* out, std::stop_token stop) {
  auto sum = peers.reduce_scatter(hocket::cuda::device(in, 6), hocket::cuda::device(out, 3), std::plus<>{},
                                  hocket::with(stop));
}
