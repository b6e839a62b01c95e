// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A table of functions that enqueue loops over elements in device memory, like kernel/host/element_kernel.hpp for the
/// host. Code that enqueues a plan depends neither on the element type nor on CUDA headers; nvcc compiles the table, in
/// kernel/device/element_kernel.cuh.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>

#include <cstddef>

HOCKET_BEGIN_NAMESPACE
namespace kernel {

/// The element loops of one operation on one type, on a stream. `count` is in elements; pointers need only the
/// alignment of the element type. A destination may be equal to a source, but must not overlap it partially.
struct stream_kernel {
  std::size_t size = 1;   ///< bytes of one element
  bool finishes = false;  ///< true if the operation has a last step, so that its results can't be combined further
  std::size_t most_sources = 0;  ///< largest number of sources that one call combines
  /// Enqueues to[i] = from[0][i] ∘ from[1][i] ∘ …, in this order, on `stream`, a CUstream. With one
  /// source, only the first and last step of the operation are applied. Reads `*op` and the pointers in `from` before
  /// it returns, and elements later, on the stream.
  failure (*combine_many)(void* stream, const void* op, void* to, const void* const* from, std::size_t sources,
                          std::size_t count) = nullptr;
  /// Loads the device code that `combine_many` needs for `sources` sources; may be null. CUDA otherwise loads it at the
  /// first launch, and may then wait for all work on the device: a deadlock, if that work waits for this rank.
  failure (*load)(std::size_t sources) = nullptr;
  std::size_t most_fused = 0;  ///< largest number of ranks for `to_all`
  /// Like `combine_many`, but writes the result to each of `ranks` destinations; there are as many sources. Each
  /// destination may be equal to the source with the same index, but must not overlap a source partially.
  failure (*to_all)(void* stream, const void* op, void* const* to, const void* const* from, std::size_t ranks,
                    std::size_t count) = nullptr;
};

/// The table for collectives that only copy elements: it has their size and no functions.
template <class T>
inline constexpr stream_kernel copy_stream_kernel_of{.size = sizeof(T)};

}  // namespace kernel
HOCKET_END_NAMESPACE
