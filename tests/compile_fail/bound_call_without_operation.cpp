// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a bound reduction needs its operation
//
// Other calls compute a sum by default; a bound call does not.
#include <hocket/group/peers.hpp>
#include <hocket/hocket.hpp>

struct no_kernels {};
using ranks = hocket::cuda::peers_of<hocket::local::domain, hocket::cuda_ipc::driver, no_kernels>;

void misuse(ranks& peers, float* buffer) {
  auto sum = peers.all_reduce(hocket::in_place(hocket::cuda::device(buffer, 3)));
}
