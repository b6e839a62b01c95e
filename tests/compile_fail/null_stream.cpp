// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: deleted function
//
// CUDA takes 0 for the legacy stream, which must be passed as cudaStreamLegacy.
#include <hocket/collective/device/memory.hpp>

void misuse() { static_cast<void>(hocket::cuda::stream_ref(nullptr)); }
