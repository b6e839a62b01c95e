// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The loops over elements, behind a table of functions.
///
/// The engine moves bytes and does not know the element type; it calls these. One table per operation and type keeps
/// the engine itself compiled once, and costs nothing above 1 KiB. Two traps are answered here: g++ at -O2 leaves
/// floating-point loops scalar, which costs a factor of 3 to 4, and loops whose number of operands is only known at
/// run time cost another factor of 4.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/operation/fixed_tree.hpp>
#include <hocket/operation/traits.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

/// Optimises one function as -O3 does, whatever the including program is compiled with. clang vectorises at -O2 anyway.
#if defined(__GNUC__) && !defined(__clang__)
#define HOCKET_VECTORIZE __attribute__((optimize("O3")))
#else
#define HOCKET_VECTORIZE
#endif

HOCKET_BEGIN_NAMESPACE
namespace kernel {

namespace detail {

inline void copy_bytes(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

}  // namespace detail

/// The element loops of one operation on one type. All counts are in elements; no pointer need be aligned beyond its
/// type. A destination may be the same memory as a source, never a shifted part of it.
struct leaf {
  std::size_t size = 1;  ///< bytes of one partial result
  /// to[i] = a[i] ∘ b[i]
  void (*two)(const void* op, void* to, const void* a, const void* b, std::size_t count) = nullptr;
  /// to[i] = from[0][i] ∘ from[1][i] ∘ …, in this order: from the left, or in the tree of `in_fixed_tree<Op>`
  void (*many)(const void* op, void* to, const void* const* from, std::size_t sources, std::size_t count) = nullptr;
  /// to = from, for memory that does not overlap
  void (*copy)(void* to, const void* from, std::size_t bytes) = &detail::copy_bytes;
};

namespace detail {

template <class Op, class T>
HOCKET_VECTORIZE void combine_two(const void* op, void* to, const void* a, const void* b, std::size_t count) {
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

/// Element i of the sources, for `fixed_tree_over`.
template <class Op, class T, std::size_t Sources>
struct sources_at {
  using reduction = hocket::reduction<Op, T>;
  using accumulator = typename reduction::accumulator;

  const Op& op;
  const typename reduction::partial* const (&from)[Sources];
  std::size_t i;

  accumulator read(std::size_t source) const { return static_cast<accumulator>(from[source][i]); }
  accumulator combine(const accumulator& a, const accumulator& b) const { return reduction::combine_rounded(op, a, b); }
};

template <class Op, class T, std::size_t Sources>
HOCKET_VECTORIZE void combine_fixed(const Op& op, typename reduction<Op, T>::partial* to,
                                    const typename reduction<Op, T>::partial* const (&from)[Sources],
                                    std::size_t count) {
  using reduction = hocket::reduction<Op, T>;
  using partial = typename reduction::partial;
  using accumulator = typename reduction::accumulator;
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (hocket::detail::is_in_fixed_tree<Op>) {
      const sources_at<Op, T, Sources> all{op, from, i};
      to[i] = static_cast<partial>(hocket::detail::fixed_tree_over<Sources>::value(all));
    } else {
      auto sum = static_cast<accumulator>(from[0][i]);
      for (std::size_t k = 1; k < Sources; ++k) sum = reduction::combine(op, sum, static_cast<accumulator>(from[k][i]));
      to[i] = static_cast<partial>(sum);
    }
  }
}

/// Any number of sources: a tile of accumulators at a time. The tile is written out only when all sources were read, as
/// the destination may be one of them.
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
    const auto* const first = static_cast<const partial*>(from[0]) + begin;
    for (std::size_t i = 0; i < size; ++i) tile[i] = static_cast<sum_type>(first[i]);
    for (std::size_t k = 1; k < sources; ++k) {
      const auto* const source = static_cast<const partial*>(from[k]) + begin;
      for (std::size_t i = 0; i < size; ++i) {
        tile[i] = reduction::combine(op, tile[i], static_cast<sum_type>(source[i]));
      }
    }
    for (std::size_t i = 0; i < size; ++i) to[begin + i] = static_cast<partial>(tile[i]);
  }
}

/// The same in the fixed tree: of each level, a tile of partial results.
template <class Op, class T>
HOCKET_VECTORIZE void combine_tiled_tree(const Op& op, typename reduction<Op, T>::partial* to, const void* const* from,
                                         std::size_t sources, std::size_t count) {
  using partial = typename reduction<Op, T>::partial;
  constexpr std::size_t tile_size = std::max<std::size_t>(1, 512 / sizeof(partial));
  alignas(partial) std::byte storage[hocket::detail::fixed_tree_depth * tile_size * sizeof(partial)];
  auto* const tiles = reinterpret_cast<partial*>(storage);
  for (std::size_t begin = 0; begin < count; begin += tile_size) {
    const std::size_t size = std::min(tile_size, count - begin);
    hocket::detail::walk_fixed_tree(
        sources,
        [&](std::size_t level, std::size_t source) {
          std::memcpy(tiles + level * tile_size, static_cast<const partial*>(from[source]) + begin,
                      size * sizeof(partial));
        },
        [&](std::size_t level) {
          partial* const tile = tiles + level * tile_size;
          combine_two<Op, T>(&op, tile, tile, tile + tile_size, size);
        });
    std::memcpy(to + begin, tiles, size * sizeof(partial));
  }
}

template <class Op, class T>
void combine_many(const void* op, void* to, const void* const* from, std::size_t sources, std::size_t count) {
  using partial = typename reduction<Op, T>::partial;
  const Op& combine = *static_cast<const Op*>(op);
  auto* const result = static_cast<partial*>(to);
  const auto at = [from](std::size_t k) { return static_cast<const partial*>(from[k]); };
  switch (sources) {
    case 2: return combine_fixed<Op, T>(combine, result, {at(0), at(1)}, count);
    case 3: return combine_fixed<Op, T>(combine, result, {at(0), at(1), at(2)}, count);
    case 4: return combine_fixed<Op, T>(combine, result, {at(0), at(1), at(2), at(3)}, count);
    case 8:
      return combine_fixed<Op, T>(combine, result, {at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)}, count);
    default:
      if constexpr (hocket::detail::is_in_fixed_tree<Op>) {
        return combine_tiled_tree<Op, T>(combine, result, from, sources, count);
      } else {
        return combine_tiled<Op, T>(combine, result, from, sources, count);
      }
  }
}

}  // namespace detail

/// The loops for combining partial results of `Op` on `T`.
template <class Op, class T>
inline constexpr leaf leaf_of{sizeof(typename reduction<Op, T>::partial), &detail::combine_two<Op, T>,
                              &detail::combine_many<Op, T>};

/// For collectives that only move data.
template <class T>
inline constexpr leaf moving_leaf_of{sizeof(T), nullptr, nullptr};

}  // namespace kernel
HOCKET_END_NAMESPACE
