// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The loops over elements in device memory, as a table of functions, like kernel/host/element_kernel.hpp for the host.
/// Code that enqueues a plan knows neither type nor CUDA; nvcc makes the table, in kernel/device/element_kernel.cuh.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>

#include <cstddef>

HOCKET_BEGIN_NAMESPACE
namespace kernel {

/// The element loops of one operation on one type, on a stream. All counts are in elements; pointers need only the
/// alignment of their type. A destination may be the same memory as a source, but not a shifted part of it.
struct stream_kernel {
  std::size_t size = 1;          ///< bytes of one element
  bool finishes = false;         ///< true if it combines contributions into results, which can't be combined further
  std::size_t most_sources = 0;  ///< largest number of sources that one call combines
  /// Enqueues to[i] = from[0][i] ∘ from[1][i] ∘ …, in this order, on `stream`, a CUstream. A single source is only
  /// prepared and finished. Reads what `op` and `from` point to before it returns.
  failure (*combine_many)(void* stream, const void* op, void* to, const void* const* from, std::size_t sources,
                          std::size_t count) = nullptr;
  /// Loads what `combine_many` needs for `sources` sources to the current device; may be null. CUDA loads a kernel at
  /// its first launch, and may then wait for all other work, including that of ranks that wait for this one.
  failure (*load)(std::size_t sources) = nullptr;
  std::size_t most_fused = 0;  ///< largest number of ranks for `to_all`
  /// Enqueues the same with as many destinations as sources. Each destination may be the source with its number, but
  /// not a shifted part of any source.
  failure (*to_all)(void* stream, const void* op, void* const* to, const void* const* from, std::size_t ranks,
                    std::size_t count) = nullptr;
};

/// For collectives that only move data.
template <class T>
inline constexpr stream_kernel copy_stream_kernel_of{.size = sizeof(T)};

}  // namespace kernel
HOCKET_END_NAMESPACE
