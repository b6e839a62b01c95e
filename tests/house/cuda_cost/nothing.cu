// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// For cuda_size.cmake: a program that includes the door and calls for nothing.
#include <hocket/cuda.cuh>

#include <cuda_runtime.h>

int main() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess ? 0 : 1;
}
