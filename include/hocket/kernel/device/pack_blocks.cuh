// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Gathers blocks of a device buffer in rank order, as `all_to_all_v` sends them, and scatters them again.
///
/// Code that routes elements to ranks leaves each rank's block at some position, with a count that only the device
/// knows: neither one copy from the host per block nor one thread per block is fast. Block k begins at element
/// displacements[k] of the scattered buffer; in the packed buffer, it follows the blocks before it: a scan of the
/// counts. CUB copies: it gives small blocks to threads, medium ones to warps, and splits large ones among all.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/kernel/device/launch.cuh>
#include <hocket/kernel/device/partition.hpp>
#include <hocket/kernel/device/workspace.hpp>

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_memcpy.cuh>
#include <cuda/stream_ref>

#include <cstddef>
#include <cstdint>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace kernel {
namespace device {

/// Where block k of a buffer begins: at `places[k]`, or at `packed_places[k]` if `places` is null, which denotes a
/// packed buffer. One type for both, so that packing and unpacking are one kernel.
template <class T, class Index>
struct block_begin {
  T* data;
  const Index* places;
  const std::size_t* packed_places;

  HOCKET_HOST_DEVICE T* operator()(std::size_t k) const {
    return data + (places != nullptr ? static_cast<std::size_t>(places[k]) : packed_places[k]);
  }
};

/// Number of bytes of block k.
template <class T, class Index>
struct block_bytes {
  const Index* counts;

  HOCKET_HOST_DEVICE std::size_t operator()(std::size_t k) const {
    return static_cast<std::size_t>(counts[k]) * sizeof(T);
  }
};

HOCKET_BEGIN_LAUNCHERS

namespace packing {

/// How a workspace is divided.
struct layout {
  std::size_t places_at = 0;
  std::size_t temporary_at = 0;
  std::size_t copy_bytes = 0;
  std::size_t bytes = 0;
};

template <class Function>
auto of_each_block(const Function& function) {
  return thrust::make_transform_iterator(thrust::counting_iterator<std::size_t>(0), function);
}

/// places[k] = counts[0] + … + counts[k - 1]. Runs as one thread block: there are thousands of ranks at most, and a
/// launch costs more than a scan of their counts.
template <class Index>
__global__ void __launch_bounds__(launch_shape{}.threads)
    place_packed(std::size_t* places, const Index* counts, std::size_t blocks) {
  using block_scan = cub::BlockScan<std::size_t, launch_shape{}.threads>;
  __shared__ typename block_scan::TempStorage storage;
  std::size_t before = 0;
  for (std::size_t first = 0; first < blocks; first += launch_shape{}.threads) {
    const std::size_t k = first + threadIdx.x;
    std::size_t place = k < blocks ? static_cast<std::size_t>(counts[k]) : 0;
    std::size_t all = 0;
    block_scan(storage).ExclusiveSum(place, place, all);
    if (k < blocks) places[k] = before + place;
    before += all;
    __syncthreads();  // before the storage is used again
  }
}

template <class T, class Index>
cudaError_t copy(void* temporary, std::size_t& bytes, const block_begin<const T, Index>& from,
                 const block_begin<T, Index>& to, const Index* counts, std::size_t blocks, cudaStream_t stream) {
  return cub::DeviceMemcpy::Batched(temporary, bytes, of_each_block(from), of_each_block(to),
                                    of_each_block(block_bytes<T, Index>{counts}), static_cast<std::int64_t>(blocks),
                                    stream);
}

template <class T, class Index>
cudaError_t find_layout(std::size_t blocks, layout& result) {
  const cudaError_t status = copy<T, Index>(nullptr, result.copy_bytes, {}, {}, nullptr, blocks, nullptr);
  workspace_cut cut;
  result.places_at = cut.take(blocks * sizeof(std::size_t));
  result.temporary_at = cut.take(result.copy_bytes);
  result.bytes = cut.bytes();
  return status;
}

/// Copies each block. The side without places is packed.
template <class T, class Index>
failure move(const char* operation, ::cuda::stream_ref stream, const workspace& lent, T* to, const Index* to_places,
             const T* from, const Index* from_places, const Index* counts, std::size_t blocks) {
  static_assert(std::is_trivially_copyable_v<T>,
                "hocket: blocks are copied as bytes, so elements must be trivially copyable");
  static_assert(std::is_integral_v<Index> && !std::is_same_v<Index, bool>,
                "hocket: counts and displacements must be integers");
  if (blocks == 0) return {};
  layout at;
  cudaError_t status = find_layout<T, Index>(blocks, at);
  if (status != cudaSuccess) return failure_of(status, operation);
  if (failure wrong = check_workspace(lent, at.bytes, operation)) return wrong;
  auto* const packed_places = array_of<std::size_t>(lent, at.places_at);
  void* const temporary = array_of<void>(lent, at.temporary_at);
  cudaLaunchConfig_t configuration{};
  configuration.gridDim = dim3(1);
  configuration.blockDim = dim3(launch_shape{}.threads);
  configuration.stream = stream.get();
  status = cudaLaunchKernelEx(&configuration, &place_packed<Index>, packed_places, counts, blocks);
  if (status == cudaSuccess) {
    status = copy<T, Index>(temporary, at.copy_bytes, {from, from_places, packed_places},
                            {to, to_places, packed_places}, counts, blocks, stream.get());
  }
  return failure_of(status, operation);
}

}  // namespace packing

/// Sets `bytes` to the workspace size of `pack_blocks` and `unpack_blocks` for `blocks` blocks of T, counted in
/// `Index`.
/// Errors: `errc::system`, with CUDA's message, without a device.
template <class T, class Index>
failure pack_blocks_workspace(std::size_t blocks, std::size_t& bytes) {
  bytes = 0;
  if (blocks == 0) return {};
  packing::layout at;
  const cudaError_t status = packing::find_layout<T, Index>(blocks, at);
  bytes = at.bytes;
  return failure_of(status, "pack_blocks");
}

/// Copies block k of `from`, `counts[k]` elements from `displacements[k]` on, to `to`, after the blocks before it, on
/// `stream`.
///
/// Buffers: memory that the current device can access, also for counts and displacements; all must stay valid until the
/// stream has executed the call. `to` overlaps no block. A block may be empty; blocks of `from` may overlap.
/// Cost: one pass over the counts, by one block of threads, and one over the elements; does not wait.
/// Errors: `errc::invalid_argument` if the workspace is too small or does not begin at a multiple of 256;
/// `errc::system`, with CUDA's message, if a kernel could not be launched.
template <class T, class Index>
failure pack_blocks(::cuda::stream_ref stream, const workspace& lent, T* to, const T* from, const Index* counts,
                    const Index* displacements, std::size_t blocks) {
  return packing::move<T, Index>("pack_blocks", stream, lent, to, nullptr, from, displacements, counts, blocks);
}

/// The inverse: copies block k of the packed `from` to `to`, from `displacements[k]` on. Blocks of `to` overlap neither
/// each other nor `from`; elements between them are not changed. Otherwise like `pack_blocks`.
template <class T, class Index>
failure unpack_blocks(::cuda::stream_ref stream, const workspace& lent, T* to, const T* from, const Index* counts,
                      const Index* displacements, std::size_t blocks) {
  return packing::move<T, Index>("unpack_blocks", stream, lent, to, displacements, from, nullptr, counts, blocks);
}

HOCKET_END_LAUNCHERS

}  // namespace device
}  // namespace kernel
HOCKET_END_NAMESPACE
