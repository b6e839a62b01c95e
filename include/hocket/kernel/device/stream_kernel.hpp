// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The loops over elements of a device, behind a table of functions: what kernel/host/element_kernel.hpp is for the host. Whoever
/// enqueues a plan knows neither the element type nor CUDA; nvcc makes the table, in kernel/device/element_kernel.cuh.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>

#include <cstddef>

HOCKET_BEGIN_NAMESPACE
namespace kernel {

/// The element loops of one operation on one type, on a stream. All counts are in elements; no pointer need be aligned
/// beyond its type. A destination may be the same memory as a source, never a shifted part of it.
struct stream_kernel {
  std::size_t size = 1;          ///< bytes of one element
  bool finishes = false;         ///< whether it combines contributions into results, of which no more can be combined
  std::size_t most_sources = 0;  ///< that can be combined at once
  /// Puts to[i] = from[0][i] ∘ from[1][i] ∘ …, in this order, or of one source what is made of it alone, on `stream`, a
  /// CUstream. What `op` and `from` point at is read before this returns.
  failure (*many)(void* stream, const void* op, void* to, const void* const* from, std::size_t sources,
                  std::size_t count) = nullptr;
  /// Brings what `many` needs for so many sources to the current device; null: nothing. CUDA loads a kernel when it is
  /// launched first, and may wait for all other work then: for that of ranks, too, that wait for this one.
  failure (*load)(std::size_t sources) = nullptr;
  std::size_t most_fused = 0;  ///< for how many ranks there is the following
  /// Puts the same into as many destinations as there are sources. Each may be the source of its number, and no shifted
  /// part of any.
  failure (*to_all)(void* stream, const void* op, void* const* to, const void* const* from, std::size_t ranks,
                    std::size_t count) = nullptr;
};

/// For collectives that only move data.
template <class T>
inline constexpr stream_kernel copy_stream_kernel_of{.size = sizeof(T)};

}  // namespace kernel
HOCKET_END_NAMESPACE
