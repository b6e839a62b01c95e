// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: pass each as cuda::device\(pointer, size\)
//
// A pointer has no size.
#include <hocket/group/peers.hpp>
#include <hocket/hocket.hpp>

struct no_kernels {};
using ranks = hocket::cuda::peers_of<hocket::local::domain, hocket::cuda_ipc::driver, no_kernels>;

void misuse(ranks& peers, float* in, float* out) { auto all = peers.all_gather(in, out); }
