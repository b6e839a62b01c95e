// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The door to memory of devices, for nvcc: `cuda::device(...)`, `cuda::pinned(...)` and `cuda::managed(...)`, streams, and
/// kernels that combine, quantise and unscale there. Beside a door that has collectives, before or after it, these take
/// such buffers: <hocket/hocket.hpp> for threads as ranks, <hocket/ucx.hpp> for processes. Nothing of CUDA's driver is linked:
/// it is loaded when a call first needs it.
///
/// A program of another compiler gets the collectives from <hocket/collective/device/staged.hpp>.
#pragma once

#include <hocket/collective/device/memory.hpp>
#include <hocket/kernel/device/accumulate.cuh>
#include <hocket/kernel/device/combine.cuh>
#include <hocket/kernel/device/quantize.cuh>
#include <hocket/kernel/device/unscale.cuh>

// See collective/detail/generate_call.hpp, which looks for this one where it is read later.
#define HOCKET_DETAIL_HAS_CUDA_HEADER
#if defined(HOCKET_DETAIL_HAS_DEVICE_CALLS)
#include <hocket/collective/device/staged.hpp>
#endif
