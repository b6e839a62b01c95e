// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Functions that pack and unpack blocks for collectives: they copy blocks between dense arrays, and list the block of
/// each member of a group of ranks.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/shard/extents.hpp>
#include <hocket/shard/placement.hpp>

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// A dense row-major array that holds a block of a tensor.
template <class T, std::size_t Rank>
struct block {
  T* data;
  box<Rank> where;

  constexpr std::size_t offset(const std::array<std::size_t, Rank>& at) const noexcept {
    std::size_t result = 0;
    for (std::size_t d = 0; d < Rank; ++d) result = result * where.size[d] + (at[d] - where.begin[d]);
    return result;
  }
};

inline constexpr std::size_t absent = static_cast<std::size_t>(-1);  ///< offset of elements that are not contiguous

/// Returns the offset of `region` in an array that holds `whole`, or `absent` if its elements are not contiguous there.
template <std::size_t Rank>
constexpr std::size_t contiguous_offset(const box<Rank>& region, const box<Rank>& whole) noexcept {
  std::size_t d = 0;
  while (d < Rank && whole.size[d] == 1) ++d;
  for (std::size_t later = d + 1; later < Rank; ++later) {
    if (region.size[later] != whole.size[later]) return absent;
  }
  return block<const char, Rank>{nullptr, whole}.offset(region.begin);
}

/// Copies the elements of `region`, which both blocks hold.
template <class T, std::size_t Rank>
void copy_region(const block<T, Rank>& to, const block<const T, Rank>& from, const box<Rank>& region) {
  if (region.volume() == 0) return;
  // A row spans as many inner dimensions as are contiguous in both blocks.
  std::size_t outer = Rank;
  std::size_t row = 1;
  while (outer > 0) {
    --outer;
    row *= region.size[outer];
    if (region.size[outer] != to.where.size[outer] || region.size[outer] != from.where.size[outer]) break;
  }
  std::array<std::size_t, Rank> at = region.begin;
  for (;;) {
    std::memcpy(to.data + to.offset(at), from.data + from.offset(at), row * sizeof(T));
    std::size_t d = outer;
    while (d > 0 && ++at[d - 1] == region.begin[d - 1] + region.size[d - 1]) {
      at[d - 1] = region.begin[d - 1];
      --d;
    }
    if (d == 0) return;
  }
}

/// Returns the parts of the members of a group, the ranks that differ from this rank only in the coordinates along
/// `set`, in the order of the group's communicator.
template <std::size_t Rank, class Mesh>
std::vector<box<Rank>> parts_along(const Mesh& mesh, axis_set set, const std::array<std::size_t, Rank>& sizes,
                                   std::span<const placement> placed) {
  std::vector<box<Rank>> parts;
  for_all_along(mesh.extents(), mesh.coordinates(), set, [&](const auto& at) {
    parts.push_back(part_of<Rank>(sizes, placed, mesh.extents(), at));
    return true;
  });
  return parts;
}

}  // namespace detail
HOCKET_END_NAMESPACE
