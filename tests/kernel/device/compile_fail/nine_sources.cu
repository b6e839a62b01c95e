// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// expect: hocket: a combination must have 2 to 8 sources
#include <hocket/kernel/device/combine.cuh>

void misuse(cuda::stream_ref stream, float* to, const float* const (&from)[9]) {
  static_cast<void>(hocket::kernel::device::combine<float>(stream, std::plus<>{}, to, from, 5));
}
