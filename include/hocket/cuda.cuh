// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Umbrella header for device memory, for nvcc: `cuda::device(...)`, `cuda::pinned(...)` and `cuda::managed(...)`,
/// streams, and kernels that combine, quantise and unscale. Collectives accept such buffers if a header that declares
/// them is included too, in any order: <hocket/hocket.hpp> for threads as ranks, <hocket/ucx.hpp> for processes.
/// Programs are not linked with the CUDA driver: the first call that needs it loads it.
///
/// Programs built by another compiler get the collectives from <hocket/collective/device/staged.hpp>.
#pragma once

#include <hocket/collective/device/memory.hpp>
#include <hocket/kernel/device/accumulate.cuh>
#include <hocket/kernel/device/combine.cuh>
#include <hocket/kernel/device/quantize.cuh>
#include <hocket/kernel/device/unscale.cuh>

// collective/detail/generate_call.hpp tests this macro if it is included after this header.
#define HOCKET_DETAIL_HAS_CUDA_HEADER
#if defined(HOCKET_DETAIL_HAS_DEVICE_CALLS)
#include <hocket/collective/device/staged.hpp>
#endif
