// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The door to memory of devices, for nvcc: collectives on `cuda::device(...)`, `cuda::pinned(...)` and
/// `cuda::managed(...)` in the order of a stream, and kernels that combine, quantise and unscale there. Threads are ranks;
/// for processes, include <hocket/ucx.hpp> too. Nothing of CUDA's driver is linked: it is loaded when a call first needs it.
///
/// A program of another compiler gets the collectives from <hocket/collective/device/staged.hpp>.
#pragma once

#include <hocket/collective/device/memory.hpp>
#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>
#include <hocket/kernel/device/accumulate.cuh>
#include <hocket/kernel/device/combine.cuh>
#include <hocket/kernel/device/quantize.cuh>
#include <hocket/kernel/device/unscale.cuh>
