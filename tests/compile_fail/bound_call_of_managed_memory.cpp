// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a bound call takes only device memory
//
// Peers can't map managed memory.
#include <hocket/group/peers.hpp>
#include <hocket/hocket.hpp>

struct no_kernels {};
using ranks = hocket::cuda::peers_of<hocket::local::domain, hocket::cuda_ipc::driver, no_kernels>;

void misuse(ranks& peers, float* in, float* out) {
  auto sum = peers.all_reduce(hocket::cuda::managed(in, 3), hocket::cuda::device(out, 3), std::plus<>{});
}
