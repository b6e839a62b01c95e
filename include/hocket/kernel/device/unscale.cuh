// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Multiplies gradients by the inverse loss scale, checks whether all are finite, and sums their squares, in one pass.
///
/// Mixed precision needs all three for every gradient before a step. The sum has the same bits in every run and on
/// every GPU, for the same count and alignment: the grid depends only on the count, each block writes its part, and one
/// block adds the parts in order. It is computed in double, where squares of finite floats do not overflow.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/kernel/device/group.hpp>
#include <hocket/kernel/device/launch.cuh>
#include <hocket/kernel/device/partition.hpp>
#include <hocket/operation/apply.hpp>
#include <hocket/scalar/traits.hpp>

#include <cub/block/block_reduce.cuh>
#include <cuda/stream_ref>

#include <cstddef>
#include <cstdint>
#include <limits>

HOCKET_BEGIN_NAMESPACE
namespace kernel {
namespace device {

/// Findings about some of the elements.
struct gradient_tally {
  double squares = 0;            ///< sum of squares, of the values before they were rounded to the elements' type
  std::uint32_t not_finite = 0;  ///< 1 if one of them is infinite or not a number
  std::uint32_t unused = 0;      ///< so that there is no padding
};

/// to[i] = inverse_scale * from[i], and updates a tally. `to` may be `from`.
template <class T>
struct unscaling {
  using wide = accumulator_t<T>;
  static constexpr std::size_t group_size = group_of(sizeof(T));

  T* to;
  const T* from;
  wide inverse_scale;

  HOCKET_HOST_DEVICE T unscaled(const T& value, gradient_tally& tally) const {
    const wide exact = hocket::detail::rounded_product(inverse_scale, static_cast<wide>(value));
    const T result = static_cast<T>(exact);
    if (!is_finite(exact) || !is_finite(static_cast<wide>(result))) tally.not_finite = 1;
    const auto widest = static_cast<double>(exact);
    tally.squares = tally.squares + hocket::detail::rounded_product(widest, widest);
    return result;
  }

  HOCKET_HOST_DEVICE void on_element(std::size_t i, gradient_tally& tally) const { to[i] = unscaled(from[i], tally); }

  HOCKET_HOST_DEVICE void on_group(std::size_t first, gradient_tally& tally) const {
    const auto values = load_group<group_size>(from + first);
    group<T, group_size> results;
    HOCKET_DETAIL_UNROLL
    for (std::size_t i = 0; i < group_size; ++i) results.set(i, unscaled(values.get(i), tally));
    store_group(to + first, results);
  }

  HOCKET_HOST_DEVICE partition parts(std::size_t count) const {
    return cut(count, group_size, extent_of(to), extent_of(from));
  }

  /// A value minus itself is zero only if the value is finite.
  HOCKET_HOST_DEVICE static bool is_finite(const wide& value) { return value - value == 0; }
};

/// Blocks that every GPU is assumed to run at the same time, so that all add in one order. An A100 runs a few more.
inline constexpr int unscale_blocks_at_once = 832;

/// Number of tallies that `scratch` must have room for.
inline constexpr std::size_t unscale_scratch = unscale_blocks_at_once;

HOCKET_BEGIN_LAUNCHERS

/// Returns the tally of all threads of the block, to its first thread.
inline __device__ gradient_tally tally_of_block(const gradient_tally& mine) {
  using reduce = cub::BlockReduce<double, launch_shape{}.threads>;
  __shared__ typename reduce::TempStorage storage;
  gradient_tally all;
  all.squares = reduce(storage).Sum(mine.squares);
  all.not_finite = __syncthreads_or(static_cast<int>(mine.not_finite)) != 0 ? 1 : 0;
  return all;
}

/// The kernel of `unscale`.
template <class Body>
__global__ void __launch_bounds__(launch_shape{}.threads)
    unscale_blocks(const __grid_constant__ Body body, const __grid_constant__ partition parts,
                   gradient_tally* of_blocks) {
  gradient_tally mine;
  const std::size_t thread = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::size_t threads = std::size_t{gridDim.x} * blockDim.x;
  visit(
      parts, thread, threads, [&](std::size_t first) { body.on_group(first, mine); },
      [&](std::size_t i) { body.on_element(i, mine); });
  const gradient_tally all = tally_of_block(mine);
  if (threadIdx.x == 0) of_blocks[blockIdx.x] = all;
}

/// Runs as one block. A template, so that only programs that use it contain it.
template <class Tally>
__global__ void __launch_bounds__(launch_shape{}.threads)
    add_tallies(const Tally* of_blocks, unsigned blocks, Tally* result) {
  Tally mine;
  for (unsigned i = threadIdx.x; i < blocks; i += blockDim.x) {
    mine.squares = mine.squares + of_blocks[i].squares;
    mine.not_finite |= of_blocks[i].not_finite;
  }
  const Tally all = tally_of_block(mine);
  if (threadIdx.x == 0) *result = all;
}

/// to[i] = inverse_scale * from[i] for `count` elements, on `stream`; writes the tally to *result.
///
/// Buffers: memory that the current device can access, valid until the stream has executed the call; `scratch` has room
/// for `unscale_scratch` tallies. `to` may be `from`. Cost: one pass; two launches. Order: see above.
/// Errors: `errc::system`, with CUDA's message, if a kernel could not be launched.
template <class T>
failure unscale(::cuda::stream_ref stream, T* to, const T* from, accumulator_t<T> inverse_scale, std::size_t count,
                gradient_tally* scratch, gradient_tally* result) {
  const unscaling<T> body{to, from, inverse_scale};
  const launch_shape shape = shape_of(2 * count * sizeof(T), unscale_blocks_at_once);
  cudaLaunchConfig_t configuration{};
  configuration.gridDim = dim3(shape.blocks);
  configuration.blockDim = dim3(shape.threads);
  configuration.stream = stream.get();
  cudaError_t status =
      cudaLaunchKernelEx(&configuration, &unscale_blocks<unscaling<T>>, body, body.parts(count), scratch);
  if (status == cudaSuccess) {
    configuration.gridDim = dim3(1);
    const gradient_tally* const of_blocks = scratch;
    status = cudaLaunchKernelEx(&configuration, &add_tallies<gradient_tally>, of_blocks, shape.blocks, result);
  }
  return failure_of(status, "unscale");
}

HOCKET_END_LAUNCHERS

}  // namespace device
}  // namespace kernel
HOCKET_END_NAMESPACE
