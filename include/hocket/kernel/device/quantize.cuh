// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Converts blocks of numbers to 8-bit numbers with a float scale per block, and back.
///
/// A quarter of float's bytes in a message, with an error relative to the largest number of each block. int8 has equal
/// steps, float8_e4m3 small ones near zero. The scale maps the largest magnitude to the type's largest number. A block
/// with an infinity or NaN has the scale NaN and becomes NaNs when converted back, so that it can't go unnoticed. Each
/// step is rounded to nearest, so that host and device give the same bits.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/kernel/device/group.hpp>
#include <hocket/kernel/device/launch.cuh>
#include <hocket/kernel/device/partition.hpp>
#include <hocket/operation/apply.hpp>
#include <hocket/scalar/float8.hpp>

#include <cuda/stream_ref>

#include <cstddef>
#include <cstdint>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace kernel {
namespace device {
namespace detail {

/// a / b, rounded to nearest although the program may be compiled for fast division.
HOCKET_HOST_DEVICE inline float rounded_quotient(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fdiv_rn(a, b);
#else
  return a / b;
#endif
}

/// Returns the next smaller float of a positive one.
HOCKET_HOST_DEVICE inline float float_below(float value) {
  return __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, value) - 1);
}

inline constexpr std::uint32_t bits_of_infinity = 0x7f800000;
inline constexpr std::uint32_t bits_of_nan = 0x7fc00000;
inline constexpr float smallest_scale = 0x1p-126F;  ///< so that its inverse is finite

}  // namespace detail

/// How 8-bit types represent numbers between -largest and largest.
template <class Quantized>
struct quantized_number;

template <>
struct quantized_number<std::int8_t> {
  static constexpr float largest = 127;
  /// Adding a number whose last place is worth 1 rounds to integers, ties to even.
  HOCKET_HOST_DEVICE static std::int8_t from(float value) {
    constexpr float aligner = 0x1.8p23F;
    return static_cast<std::int8_t>((value + aligner) - aligner);
  }
};

template <>
struct quantized_number<float8_e4m3> {
  static constexpr float largest = 448;
  HOCKET_HOST_DEVICE static float8_e4m3 from(float value) { return float8_e4m3(value); }
};

/// Converts blocks of `Block` elements of T to `Quantized`; the last block may be shorter. `lanes` neighbouring threads
/// process a block, one group each; they exchange the largest magnitude in between.
template <class T, class Quantized, std::size_t Block>
struct quantization {
  static constexpr std::size_t group_size = group_of(sizeof(T), sizeof(Quantized));
  static constexpr std::size_t lanes = Block / group_size;
  static_assert(sizeof(Quantized) == 1 && Block % group_size == 0 && lanes >= 1 && lanes <= 32 &&
                    (lanes & (lanes - 1)) == 0,
                "hocket: a block to quantise must have 16, 32, 64, 128, 256 or 512 elements");
  using number = quantized_number<Quantized>;

  Quantized* to;
  float* scales;
  const T* from;
  std::size_t count;

  HOCKET_HOST_DEVICE std::size_t blocks() const { return count / Block + (count % Block != 0 ? 1 : 0); }

  /// Returns the largest magnitude of the group, as bits of a float: these are ordered like magnitudes, with NaNs last.
  HOCKET_HOST_DEVICE static std::uint32_t magnitude_of(const group<T, group_size>& values) {
    std::uint32_t largest = 0;
    HOCKET_DETAIL_UNROLL
    for (std::size_t i = 0; i < group_size; ++i) {
      const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, static_cast<float>(values.get(i))) & 0x7fffffffU;
      largest = bits > largest ? bits : largest;
    }
    return largest;
  }

  HOCKET_HOST_DEVICE static float scale_of(std::uint32_t magnitude) {
    if (magnitude >= detail::bits_of_infinity) return __builtin_bit_cast(float, detail::bits_of_nan);
    const float scale = detail::rounded_quotient(__builtin_bit_cast(float, magnitude), number::largest);
    if (scale < detail::smallest_scale) return detail::smallest_scale;
    // If rounded up, the scale of the largest float would turn it into infinity when converted back.
    const float back = hocket::detail::rounded_product(scale, number::largest);
    return __builtin_bit_cast(std::uint32_t, back) < detail::bits_of_infinity ? scale : detail::float_below(scale);
  }

  HOCKET_HOST_DEVICE group<T, group_size> load(std::size_t first) const {
    return load_group_within<group_size>(from, count, first);
  }

  /// Writes the group that begins at `first`, whose block has this scale.
  HOCKET_HOST_DEVICE void store(std::size_t first, const group<T, group_size>& values, float scale) const {
    const bool spoilt = !(scale == scale);  // NOLINT: NaN
    const float inverse = spoilt ? 0.0F : detail::rounded_quotient(1.0F, scale);
    group<Quantized, group_size> results;
    HOCKET_DETAIL_UNROLL
    for (std::size_t i = 0; i < group_size; ++i) {
      const float value = hocket::detail::rounded_product(static_cast<float>(values.get(i)), inverse);
      results.set(i, number::from(spoilt ? 0.0F : value));
    }
    store_group_within(to, count, first, results);
  }
};

/// to[i] = scale of i's block * from[i]
template <class T, class Quantized, std::size_t Block>
struct dequantization {
  static constexpr std::size_t group_size = group_of(sizeof(T), sizeof(Quantized));
  static_assert(sizeof(Quantized) == 1 && Block % group_size == 0);

  T* to;
  const Quantized* from;
  const float* scales;
  std::size_t count;

  HOCKET_HOST_DEVICE static T value_of(const Quantized& value, float scale) {
    return static_cast<T>(hocket::detail::rounded_product(scale, static_cast<float>(value)));
  }

  HOCKET_HOST_DEVICE void on_element(std::size_t i) const { to[i] = value_of(from[i], scales[i / Block]); }

  HOCKET_HOST_DEVICE void on_group(std::size_t first) const {
    const auto values = load_group_within<group_size>(from, count, first);
    const float scale = scales[first / Block];
    group<T, group_size> results;
    HOCKET_DETAIL_UNROLL
    for (std::size_t i = 0; i < group_size; ++i) results.set(i, value_of(values.get(i), scale));
    store_group(to + first, results);
  }

  /// Groups begin where blocks do, so that each group has one scale.
  HOCKET_HOST_DEVICE partition parts() const { return {count, 0, count / group_size, group_size}; }
};

HOCKET_BEGIN_LAUNCHERS

/// All threads of a warp continue until its last group, because they exchange magnitudes.
template <class Body>
__global__ void __launch_bounds__(launch_shape{}.threads) quantize_blocks(const __grid_constant__ Body body) {
  constexpr unsigned warp = 32;
  const std::size_t groups = body.blocks() * Body::lanes;
  const std::size_t thread = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::size_t threads = std::size_t{gridDim.x} * blockDim.x;
  const unsigned lane = threadIdx.x % warp;
  for (std::size_t index = thread; index - lane < groups; index += threads) {
    const std::size_t first = index * Body::group_size;
    const auto values = body.load(first);
    unsigned magnitude = Body::magnitude_of(values);
    HOCKET_DETAIL_UNROLL
    for (unsigned distance = 1; distance < Body::lanes; distance *= 2) {
      const unsigned other = __shfl_xor_sync(~0U, magnitude, static_cast<int>(distance));
      magnitude = other > magnitude ? other : magnitude;
    }
    const float scale = Body::scale_of(magnitude);
    if (index >= groups) continue;
    if (index % Body::lanes == 0) body.scales[index / Body::lanes] = scale;
    body.store(first, values, scale);
  }
}

/// Quantises `count` elements to `to`, and writes the scale of each `Block` of them to `scales`, on `stream`.
///
/// Buffers: memory that the current device can access, valid until the stream has executed the call; no overlap.
/// `scales` has room for count / Block, rounded up. Wide accesses need `to` at a multiple of 16. Cost: one pass.
/// Errors: `errc::system`, with CUDA's message, if the kernel could not be launched.
template <std::size_t Block, class T, class Quantized>
failure quantize(::cuda::stream_ref stream, Quantized* to, float* scales, const T* from, std::size_t count) {
  if (count == 0) return {};
  const quantization<T, Quantized, Block> body{to, scales, from, count};
  int resident = 0;
  cudaError_t status = count_resident_blocks<quantization<T, Quantized, Block>>(
      &quantize_blocks<quantization<T, Quantized, Block>>, resident);
  if (status == cudaSuccess) {
    const launch_shape shape = shape_of(count * (sizeof(T) + sizeof(Quantized)), resident);
    cudaLaunchConfig_t configuration{};
    configuration.gridDim = dim3(shape.blocks);
    configuration.blockDim = dim3(shape.threads);
    configuration.stream = stream.get();
    status = cudaLaunchKernelEx(&configuration, &quantize_blocks<quantization<T, Quantized, Block>>, body);
  }
  return failure_of(status, "quantize");
}

/// The inverse: to[i] = scales[i / Block] * from[i].
template <std::size_t Block, class T, class Quantized>
failure dequantize(::cuda::stream_ref stream, T* to, const Quantized* from, const float* scales, std::size_t count) {
  const dequantization<T, Quantized, Block> body{to, from, scales, count};
  return launch("dequantize", body, body.parts(), count * (sizeof(T) + sizeof(Quantized)), stream);
}

HOCKET_END_LAUNCHERS

}  // namespace device
}  // namespace kernel
HOCKET_END_NAMESPACE
