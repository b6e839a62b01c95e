// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// For cuda_size.cmake: one all_reduce of float on a device. cuda.cuh is included first here, and last elsewhere: in
// both cases, collectives take device buffers.
#include <hocket/cuda.cuh>

#include <hocket/collective/all_reduce.hpp>
#include <hocket/group/local.hpp>

#include <cuda_runtime.h>

#include <functional>

int main() {
  int devices = 0;
  hocket::local::run(2, [](auto comm) {
    float* values = nullptr;
    if (cudaMalloc(&values, 4096) != cudaSuccess) return;
    hocket::all_reduce(comm, hocket::in_place(hocket::cuda::device(values, 1024)), std::plus<>{},
                       hocket::with(hocket::cuda::stream_ref(cudaStreamPerThread)));
    cudaFree(values);
  });
  return cudaGetDeviceCount(&devices) == cudaSuccess ? 0 : 1;
}
