// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// For cuda_size.cmake: one bound all_reduce of float, with its kernels; or a bound reduce_scatter.
#include <hocket/cuda.cuh>

#include <hocket/group/local.hpp>
#include <hocket/group/peers.cuh>

#include <cuda_runtime.h>

#include <functional>

int main() {
  int devices = 0;
  hocket::local::run(2, [](auto comm) {
    cudaStream_t stream = nullptr;
    float* values = nullptr;
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return;
    if (cudaMalloc(&values, 8192) != cudaSuccess) return;
    auto peers = hocket::cuda::reach_peers(comm, hocket::cuda::stream_ref(stream));
#if defined(BOUND_REDUCE_SCATTER)
    auto sum = peers.reduce_scatter(hocket::cuda::device(values, 1024), hocket::cuda::device(values + 1024, 512),
                                    std::plus<>{});
#else
    auto sum = peers.all_reduce(hocket::in_place(hocket::cuda::device(values, 1024)), std::plus<>{});
#endif
    sum.enqueue(stream);
    sum.wait();
    peers.close();
  });
  return cudaGetDeviceCount(&devices) == cudaSuccess ? 0 : 1;
}
