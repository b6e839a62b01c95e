// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The loops that copy and combine elements, as a table of functions for each operation and type.
///
/// The engine moves bytes and does not know the element type. It calls functions of such a table, so it is compiled
/// only once; above 1 KiB the indirect calls cost nothing. The loops avoid three traps: g++ at -O2 does not vectorise
/// floating-point loops, which costs a factor of 3 to 4; a number of operands that is known only at run time costs
/// another factor of 4; and a loop of few instructions can take twice as long, depending on where the linker places it.
///
/// On x86-64, the library's operations on the usual types have the faster loops of vector_kernel.hpp. Those here are
/// for all others.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/streaming_copy.hpp>
#include <hocket/kernel/host/vector_kernel.hpp>
#include <hocket/kernel/host/vector_operation.hpp>
#include <hocket/kernel/host/vectorize.hpp>
#include <hocket/operation/fixed_tree.hpp>
#include <hocket/operation/traits.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace kernel {

namespace detail {

inline void copy_bytes(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

}  // namespace detail

/// The element loops of one operation on one type. `count` is in elements; pointers need only the alignment of the
/// type. A destination may be the same memory as a source, but must not overlap a source in any other way.
struct element_kernel {
  std::size_t size = 1;  ///< bytes of one element, which is a partial result
  /// to[i] = a[i] ∘ b[i]
  void (*combine_two)(const void* op, void* to, const void* a, const void* b, std::size_t count) = nullptr;
  /// to[i] = from[0][i] ∘ from[1][i] ∘ …, in this order: from the left, or in the tree of `in_fixed_tree<Op>`
  void (*combine_many)(const void* op, void* to, const void* const* from, std::size_t sources,
                       std::size_t count) = nullptr;
  /// to = from; the two must not overlap
  void (*copy)(void* to, const void* from, std::size_t bytes) = &detail::copy_bytes;
  /// The same, for copies that exceed the caches.
  void (*copy_past_caches)(void* to, const void* from, std::size_t bytes) = &platform::streaming_copy;
};

namespace detail {

template <class Op, class T>
HOCKET_VECTORIZE_AND_UNROLL void combine_two(const void* op, void* to, const void* a, const void* b,
                                             std::size_t count) {
  using reduction = hocket::reduction<Op, T>;
  using partial = typename reduction::partial;
  using accumulator = typename reduction::accumulator;
  const Op& combine = *static_cast<const Op*>(op);
  auto* const result = static_cast<partial*>(to);
  const auto* const left = static_cast<const partial*>(a);
  const auto* const right = static_cast<const partial*>(b);
  for (std::size_t i = 0; i < count; ++i) {
    result[i] = static_cast<partial>(
        reduction::combine(combine, static_cast<accumulator>(left[i]), static_cast<accumulator>(right[i])));
  }
}

/// Access to element `i` of each source, and the combination of two elements, for `fixed_tree_over`.
template <class Op, class T, std::size_t Sources>
struct sources_at {
  using reduction = hocket::reduction<Op, T>;
  using partial = typename reduction::partial;

  const Op& op;
  const partial* const (&from)[Sources];
  std::size_t i;

  const partial& read(std::size_t source) const { return from[source][i]; }
  partial combine(const partial& a, const partial& b) const { return reduction::combine_partials(op, a, b); }
};

/// to[i] = first[i] ∘ rest[i] ∘ …. Each source is an argument: g++ does not vectorise a loop over sources inside
/// another loop, and wide loads from an array of pointers would stall on the caller's narrower stores.
template <class Op, class T, class... Partial>
HOCKET_VECTORIZE void combine_fixed(const Op& op, typename reduction<Op, T>::partial* to, std::size_t count,
                                    const typename reduction<Op, T>::partial* first, const Partial*... rest) {
  using reduction = hocket::reduction<Op, T>;
  using partial = typename reduction::partial;
  using accumulator = typename reduction::accumulator;
  constexpr std::size_t sources = 1 + sizeof...(Partial);
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (hocket::detail::is_in_fixed_tree<Op>) {
      const partial* const from[] = {first, rest...};
      const sources_at<Op, T, sources> all{op, from, i};
      to[i] = hocket::detail::fixed_tree_over<sources>::value(all);
    } else {
      auto sum = static_cast<accumulator>(first[i]);
      ((sum = reduction::combine(op, sum, static_cast<accumulator>(rest[i]))), ...);
      to[i] = static_cast<partial>(sum);
    }
  }
}

/// tile[i] = tile[i] ∘ from[i] ∘ …
template <class Op, class T, class... Partial>
HOCKET_VECTORIZE void add_to_tile(const Op& op, typename reduction<Op, T>::accumulator* tile, std::size_t size,
                                  const Partial*... from) {
  using reduction = hocket::reduction<Op, T>;
  using accumulator = typename reduction::accumulator;
  for (std::size_t i = 0; i < size; ++i) {
    accumulator sum = tile[i];
    ((sum = reduction::combine(op, sum, static_cast<accumulator>(from[i]))), ...);
    tile[i] = sum;
  }
}

/// Combines any number of sources in tiles of accumulators: each pass over a tile adds four sources. A tile is copied
/// to the destination only after all sources were read, because the destination may be one of them.
template <class Op, class T>
HOCKET_VECTORIZE void combine_tiled(const Op& op, typename reduction<Op, T>::partial* to, const void* const* from,
                                    std::size_t sources, std::size_t count) {
  using reduction = hocket::reduction<Op, T>;
  using partial = typename reduction::partial;
  using sum_type = typename reduction::accumulator;
  constexpr std::size_t tile_size = std::max<std::size_t>(1, 4096 / sizeof(sum_type));
  alignas(sum_type) std::byte storage[tile_size * sizeof(sum_type)];  // bytes: elements need no default constructor
  auto* const tile = reinterpret_cast<sum_type*>(storage);
  for (std::size_t begin = 0; begin < count; begin += tile_size) {
    const std::size_t size = std::min(tile_size, count - begin);
    const auto source = [&](std::size_t k) { return static_cast<const partial*>(from[k]) + begin; };
    const auto* const first = source(0);
    for (std::size_t i = 0; i < size; ++i) tile[i] = static_cast<sum_type>(first[i]);
    std::size_t k = 1;
    for (; k + 4 <= sources; k += 4)
      add_to_tile<Op, T>(op, tile, size, source(k), source(k + 1), source(k + 2), source(k + 3));
    for (; k < sources; ++k) add_to_tile<Op, T>(op, tile, size, source(k));
    for (std::size_t i = 0; i < size; ++i) to[begin + i] = static_cast<partial>(tile[i]);
  }
}

/// Combines any number of sources tile by tile, with two operands in each pass over a tile.
template <class Op, class T>
void combine_in_pairs(const Op& op, typename reduction<Op, T>::partial* to, const void* const* from,
                      std::size_t sources, std::size_t count) {
  using partial = typename reduction<Op, T>::partial;
  constexpr std::size_t tile_size = std::max<std::size_t>(1, 4096 / sizeof(partial));
  alignas(partial) std::byte tile[tile_size * sizeof(partial)];
  for (std::size_t begin = 0; begin < count; begin += tile_size) {
    const std::size_t size = std::min(tile_size, count - begin);
    const auto source = [&](std::size_t k) { return static_cast<const partial*>(from[k]) + begin; };
    const void* combined = source(0);
    for (std::size_t k = 1; k < sources; ++k) {
      void* const result = k + 1 < sources ? static_cast<void*>(tile) : to + begin;
      combine_two<Op, T>(&op, result, combined, source(k), size);
      combined = result;
    }
  }
}

/// Combines any number of sources in the fixed tree. Each level holds a tile of a source, or of partial results.
template <class Op, class T>
HOCKET_VECTORIZE void combine_tiled_tree(const Op& op, typename reduction<Op, T>::partial* to, const void* const* from,
                                         std::size_t sources, std::size_t count) {
  using partial = typename reduction<Op, T>::partial;
  constexpr std::size_t tile_size = std::max<std::size_t>(1, 512 / sizeof(partial));
  alignas(partial) std::byte storage[hocket::detail::fixed_tree_depth * tile_size * sizeof(partial)];
  auto* const tiles = reinterpret_cast<partial*>(storage);
  const partial* kept[hocket::detail::fixed_tree_depth];
  for (std::size_t begin = 0; begin < count; begin += tile_size) {
    const std::size_t size = std::min(tile_size, count - begin);
    hocket::detail::walk_fixed_tree(
        sources,
        [&](std::size_t level, std::size_t source) { kept[level] = static_cast<const partial*>(from[source]) + begin; },
        [&](std::size_t level) {
          partial* const tile = tiles + level * tile_size;
          combine_two<Op, T>(&op, tile, kept[level], kept[level + 1], size);
          kept[level] = tile;
        });
    std::memcpy(to + begin, kept[0], size * sizeof(partial));
  }
}

/// Combines as many sources as there are indices in `K`.
template <class Op, class T, std::size_t... K>
void combine_known(const Op& op, void* to, const void* const* from, std::size_t count, std::index_sequence<K...>) {
  using partial = typename reduction<Op, T>::partial;
  combine_fixed<Op, T>(op, static_cast<partial*>(to), count, static_cast<const partial*>(from[K])...);
}

/// Each number of sources up to 8 has its own loop, because in tiles 5 to 7 sources took three times as long.
template <class Op, class T>
void combine_at_once(const Op& op, void* to, const void* const* from, std::size_t sources, std::size_t count) {
  switch (sources) {
    case 2: return combine_known<Op, T>(op, to, from, count, std::make_index_sequence<2>());
    case 3: return combine_known<Op, T>(op, to, from, count, std::make_index_sequence<3>());
    case 4: return combine_known<Op, T>(op, to, from, count, std::make_index_sequence<4>());
    case 5: return combine_known<Op, T>(op, to, from, count, std::make_index_sequence<5>());
    case 6: return combine_known<Op, T>(op, to, from, count, std::make_index_sequence<6>());
    case 7: return combine_known<Op, T>(op, to, from, count, std::make_index_sequence<7>());
    case 8: return combine_known<Op, T>(op, to, from, count, std::make_index_sequence<8>());
    default: break;
  }
  auto* const result = static_cast<typename reduction<Op, T>::partial*>(to);
  if constexpr (hocket::detail::is_in_fixed_tree<Op>) {
    combine_tiled_tree<Op, T>(op, result, from, sources, count);
  } else {
    combine_tiled<Op, T>(op, result, from, sources, count);
  }
}

template <class Op, class T>
void combine_many(const void* op, void* to, const void* const* from, std::size_t sources, std::size_t count) {
  const Op& combine = *static_cast<const Op*>(op);
  if constexpr (hocket::detail::best_in_pairs<Op, T>) {
    auto* const result = static_cast<typename reduction<Op, T>::partial*>(to);
    combine_in_pairs<Op, T>(combine, result, from, sources, count);
  } else {
    combine_at_once<Op, T>(combine, to, from, sources, count);
  }
}

template <class Op, class T>
consteval element_kernel make_element_kernel() {
  constexpr std::size_t size = sizeof(typename reduction<Op, T>::partial);
#if HOCKET_DETAIL_VECTOR_KERNELS
  using vectors = vector_operation<Op, T>;
  if constexpr (vectors::exists) {
    return {size, &combine_two_vectors<vectors::function, typename vectors::lane, size>,
            &combine_many_vectors<vectors::function, typename vectors::lane, size, vectors::order()>};
  } else
#endif
  {
    return {size, &combine_two<Op, T>, &combine_many<Op, T>};
  }
}

}  // namespace detail

/// The table for combining partial results of `Op` on `T`.
template <class Op, class T>
inline constexpr element_kernel element_kernel_of = detail::make_element_kernel<Op, T>();

/// The table for collectives that only move data.
template <class T>
inline constexpr element_kernel copy_kernel_of{sizeof(T), nullptr, nullptr};

}  // namespace kernel
HOCKET_END_NAMESPACE
