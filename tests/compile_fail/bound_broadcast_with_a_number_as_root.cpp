// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: pass the root as root\{0\}
//
// A number without a type could be any argument.
#include <hocket/group/peers.hpp>
#include <hocket/hocket.hpp>

struct no_kernels {};
using ranks = hocket::cuda::peers_of<hocket::local::domain, hocket::cuda_ipc::driver, no_kernels>;

void misuse(ranks& peers, float* buffer) { auto copy = peers.broadcast(hocket::cuda::device(buffer, 3), 0); }
