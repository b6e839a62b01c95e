// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Loops that combine elements with the vector instructions of the machine, in a program compiled for any x86-64.
///
/// A compiler could vectorise one loop for each level of instructions; but with loops for each number of operands that
/// took 17 KB for sums of bfloat16 at one level. These loops are written with vector types instead: operands are read
/// in a loop inside the loop over elements, because vectors stay in registers. Each level takes 0.5 to 1.5 KB, for any
/// number of operands.
///
/// Each level gives the same bits: the operations are the same instructions on wider registers, without fused or
/// reordered ones. Not used: the instructions of AVX512_BF16, which flush subnormal numbers to zero. Integer arithmetic
/// rounds bfloat16 fast enough to be limited by memory.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/float_bits.hpp>
#include <hocket/kernel/host/instruction_level.hpp>
#include <hocket/kernel/host/vector_operation.hpp>
#include <hocket/kernel/host/vectorize.hpp>
#include <hocket/operation/fixed_tree.hpp>
#include <hocket/scalar/bfloat16.hpp>
#include <hocket/scalar/half.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

/// 1 if this processor architecture and compiler have the loops of this header.
#if defined(__x86_64__)
#define HOCKET_DETAIL_VECTOR_KERNELS 1
#else
#define HOCKET_DETAIL_VECTOR_KERNELS 0
#endif

#if HOCKET_DETAIL_VECTOR_KERNELS

#define HOCKET_DETAIL_LEVEL sse2
#define HOCKET_DETAIL_WIDTH 16
#define HOCKET_DETAIL_TARGET
#define HOCKET_DETAIL_ANY "x"
#if defined(__AVX__)
#define HOCKET_DETAIL_THREE 1
#else
#define HOCKET_DETAIL_THREE 0
#endif
#define HOCKET_DETAIL_F16C 0
#include <hocket/kernel/host/impl/vector_kernel.ipp>

#define HOCKET_DETAIL_LEVEL avx2
#define HOCKET_DETAIL_WIDTH 32
#define HOCKET_DETAIL_TARGET __attribute__((target("avx2,f16c")))
#define HOCKET_DETAIL_ANY "x"
#define HOCKET_DETAIL_THREE 1
#define HOCKET_DETAIL_F16C 1
#include <hocket/kernel/host/impl/vector_kernel.ipp>

#define HOCKET_DETAIL_LEVEL avx512
#define HOCKET_DETAIL_WIDTH 64
#define HOCKET_DETAIL_TARGET __attribute__((target("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl")))
#define HOCKET_DETAIL_ANY "v"
#define HOCKET_DETAIL_THREE 1
#define HOCKET_DETAIL_F16C 1
#include <hocket/kernel/host/impl/vector_kernel.ipp>

HOCKET_BEGIN_NAMESPACE
namespace kernel::detail {

/// Combines `bytes` bytes of each source. The destination may be one of the sources. Fewer bytes than a vector has are
/// left to the next lower level.
template <vector_function Function, class Lane, vector_order Order>
void combine_vectors(void* to, const void* const* from, std::size_t sources, std::size_t bytes) {
  const instruction_level level = current_instruction_level();
  auto* const result = static_cast<std::byte*>(to);
  if (level == instruction_level::avx512 && bytes >= avx512::width) {
    avx512::combine<Function, Lane, Order>(result, from, sources, bytes);
  } else if (level != instruction_level::generic && bytes >= avx2::width) {
    avx2::combine<Function, Lane, Order>(result, from, sources, bytes);
  } else if (bytes >= sse2::width) {
    sse2::combine<Function, Lane, Order>(result, from, sources, bytes);
  } else if (bytes > 0) {
    sse2::combine_few<Function, Lane, Order>(result, from, sources, bytes);
  }
}

/// `combine_two` of an element kernel, for elements of `Size` bytes.
template <vector_function Function, class Lane, std::size_t Size>
void combine_two_vectors(const void*, void* to, const void* a, const void* b, std::size_t count) {
  const void* const from[] = {a, b};
  combine_vectors<Function, Lane, vector_order::from_left>(to, from, 2, count * Size);
}

/// `combine_many` of an element kernel, for elements of `Size` bytes.
template <vector_function Function, class Lane, std::size_t Size, vector_order Order>
void combine_many_vectors(const void*, void* to, const void* const* from, std::size_t sources, std::size_t count) {
  // The tree over three is ((0 1) 2).
  constexpr std::size_t alike = Order == vector_order::from_left_rounded || is_half_or_bfloat16<Lane> ? 2 : 3;
  if (Order != vector_order::from_left && sources <= alike) {
    return combine_vectors<Function, Lane, vector_order::from_left>(to, from, sources, count * Size);
  }
  combine_vectors<Function, Lane, Order>(to, from, sources, count * Size);
}

/// Converts elements between `Small` and float, which must not overlap. Returns false if there are too few for a
/// vector.
template <class Small, vector_conversion Conversion>
bool convert_vectors(std::byte* to, const std::byte* from, std::size_t count, float divisor) {
  const instruction_level level = current_instruction_level();
  const std::size_t bytes = count * sizeof(float);
  if (bytes < sse2::width) return false;
  if (level == instruction_level::avx512 && bytes >= avx512::width) {
    avx512::convert<Small, Conversion>(to, from, count, divisor);
  } else if (level != instruction_level::generic && bytes >= avx2::width) {
    avx2::convert<Small, Conversion>(to, from, count, divisor);
  } else {
    sse2::convert<Small, Conversion>(to, from, count, divisor);
  }
  return true;
}

}  // namespace kernel::detail
HOCKET_END_NAMESPACE

#endif
