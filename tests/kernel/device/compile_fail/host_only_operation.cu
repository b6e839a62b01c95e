// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// expect: calling a __host__ function\("for_the_host_only::operator
//
// nvcc rejects a kernel with an operation that is not marked __device__, and names the operation.
#include <hocket/kernel/device/combine.cuh>

struct for_the_host_only {
  int operator()(int a, int b) const { return a ^ b; }
};

void misuse(cuda::stream_ref stream, int* to, const int* const (&from)[2]) {
  static_cast<void>(hocket::kernel::device::combine<int>(stream, for_the_host_only{}, to, from, 5));
}
