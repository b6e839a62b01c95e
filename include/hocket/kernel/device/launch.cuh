// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Launches the kernels of this library, and reports their failures with CUDA's messages.
///
/// Two shared objects may hold the same kernel, compiled for different GPUs. If the linker merged them, a program would
/// launch one that its GPU can't run. Kernels and their launchers are therefore hidden, and in an inline namespace that
/// names the GPUs that the translation unit is compiled for. Types are never in there: they are the same for all.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/kernel/device/partition.hpp>

#include <cuda_runtime.h>
#include <cuda/stream_ref>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#if !defined(__CUDACC__)
#error "hocket: .cuh headers need nvcc; include only .hpp headers in a program without CUDA"
#endif

// sm_800_900_1000: the numbers of the list, joined. One macro per length; the longest is for nvcc -arch=all, now 12.
#define HOCKET_DETAIL_ARCHS_1(a) sm_##a
#define HOCKET_DETAIL_ARCHS_2(a, b) sm_##a##_##b
#define HOCKET_DETAIL_ARCHS_3(a, b, c) sm_##a##_##b##_##c
#define HOCKET_DETAIL_ARCHS_4(a, b, c, d) sm_##a##_##b##_##c##_##d
#define HOCKET_DETAIL_ARCHS_5(a, b, c, d, e) sm_##a##_##b##_##c##_##d##_##e
#define HOCKET_DETAIL_ARCHS_6(a, b, c, d, e, f) sm_##a##_##b##_##c##_##d##_##e##_##f
#define HOCKET_DETAIL_ARCHS_7(a, b, c, d, e, f, g) sm_##a##_##b##_##c##_##d##_##e##_##f##_##g
#define HOCKET_DETAIL_ARCHS_8(a, b, c, d, e, f, g, h) sm_##a##_##b##_##c##_##d##_##e##_##f##_##g##_##h
#define HOCKET_DETAIL_ARCHS_9(a, b, c, d, e, f, g, h, i) sm_##a##_##b##_##c##_##d##_##e##_##f##_##g##_##h##_##i
#define HOCKET_DETAIL_ARCHS_10(a, b, c, d, e, f, g, h, i, j) \
  sm_##a##_##b##_##c##_##d##_##e##_##f##_##g##_##h##_##i##_##j
#define HOCKET_DETAIL_ARCHS_11(a, b, c, d, e, f, g, h, i, j, k) \
  sm_##a##_##b##_##c##_##d##_##e##_##f##_##g##_##h##_##i##_##j##_##k
#define HOCKET_DETAIL_ARCHS_12(a, b, c, d, e, f, g, h, i, j, k, l) \
  sm_##a##_##b##_##c##_##d##_##e##_##f##_##g##_##h##_##i##_##j##_##k##_##l
#define HOCKET_DETAIL_ARCHS_N(a, b, c, d, e, f, g, h, i, j, k, l, n, ...) HOCKET_DETAIL_ARCHS_##n
#define HOCKET_DETAIL_ARCHS_OF(...) \
  HOCKET_DETAIL_ARCHS_N(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)(__VA_ARGS__)
#if defined(__CUDA_ARCH_LIST__)
#define HOCKET_ARCHITECTURES HOCKET_DETAIL_ARCHS_OF(__CUDA_ARCH_LIST__)
#else
#define HOCKET_ARCHITECTURES sm_unknown
#endif

/// Encloses kernels and their launchers, within `hocket::kernel::device`. A pragma hides them, because compilers warn
/// about the attribute if a kernel is instantiated for a lambda or another type without linkage.
#define HOCKET_BEGIN_LAUNCHERS            \
  inline namespace HOCKET_ARCHITECTURES { \
  _Pragma("GCC visibility push(hidden)")
#define HOCKET_END_LAUNCHERS    \
  _Pragma("GCC visibility pop") \
  }

HOCKET_BEGIN_NAMESPACE
namespace kernel {
namespace device {

/// Returns `status` as a failure of `operation`, with CUDA's message; no failure if it is cudaSuccess.
inline failure failure_of(cudaError_t status, const char* operation) {
  if (status == cudaSuccess) return {};
  return make_failure(
      errc::system,
      hocket::detail::concat({"CUDA reported ", cudaGetErrorName(status), ": ", cudaGetErrorString(status)}),
      {.operation = operation});
}

/// Describes a buffer to `cut()`.
template <class T>
HOCKET_HOST_DEVICE extent extent_of(const T* pointer) noexcept {
  return {reinterpret_cast<std::uintptr_t>(pointer), sizeof(T)};
}

HOCKET_BEGIN_LAUNCHERS

/// Sets `count` to the number of blocks of `kernel` that the current device runs at the same time. Each `Body` has one
/// kernel; the number is cached for each device.
template <class Body, class Kernel>
cudaError_t count_resident_blocks(Kernel* kernel, int& count) {
  static std::array<std::atomic<int>, 64> known{};
  int device = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status != cudaSuccess) return status;
  std::atomic<int>* const place =
      device < static_cast<int>(known.size()) ? &known[static_cast<std::size_t>(device)] : nullptr;
  count = place == nullptr ? 0 : place->load(std::memory_order_relaxed);
  if (count != 0) return status;
  int multiprocessors = 0;
  status = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (status == cudaSuccess) {
    status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, kernel, static_cast<int>(launch_shape{}.threads), 0);
  }
  count *= multiprocessors;
  if (status == cudaSuccess && place != nullptr) place->store(count, std::memory_order_relaxed);
  return status;
}

/// Applies `body` to every element: `on_group(first)` for the groups of `parts`, `on_element(i)` for the others.
/// `body.called_on_device()` never runs: nvcc compiles it to check that user-defined functions are __device__.
template <class Body>
__global__ void __launch_bounds__(launch_shape{}.threads)
    visit_all(const __grid_constant__ Body body, const __grid_constant__ partition parts) {
  if constexpr (requires { &Body::called_on_device; }) {
    if (false) body.called_on_device();
  }
  const std::size_t thread = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::size_t threads = std::size_t{gridDim.x} * blockDim.x;
  visit(
      parts, thread, threads, [&](std::size_t first) { body.on_group(first); },
      [&](std::size_t i) { body.on_element(i); });
}

/// Loads the kernel for bodies of this type to the current device, if it is not loaded yet.
template <class Body>
failure load(const char* operation) {
  cudaFuncAttributes unused{};
  return failure_of(cudaFuncGetAttributes(&unused, &visit_all<Body>), operation);
}

/// Launches the kernel for `body`, which moves `bytes` in all, on `stream`, a stream of the current device. Does not
/// wait until the kernel has run.
///
/// Errors: `errc::system`, with CUDA's message, if it could not be launched. The stream reports later errors.
template <class Body>
failure launch(const char* operation, const Body& body, const partition& parts, std::size_t bytes,
               ::cuda::stream_ref stream) {
  if (parts.count == 0) return {};
  int resident = 0;
  if (const cudaError_t status = count_resident_blocks<Body>(&visit_all<Body>, resident); status != cudaSuccess) {
    return failure_of(status, operation);
  }
  const launch_shape shape = shape_of(bytes, resident);
  cudaLaunchConfig_t configuration{};
  configuration.gridDim = dim3(shape.blocks);
  configuration.blockDim = dim3(shape.threads);
  configuration.stream = stream.get();
  return failure_of(cudaLaunchKernelEx(&configuration, &visit_all<Body>, body, parts), operation);
}

HOCKET_END_LAUNCHERS

}  // namespace device
}  // namespace kernel
HOCKET_END_NAMESPACE
