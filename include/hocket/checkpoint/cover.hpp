// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Whether rectangles have each element of a tensor once: those that ranks save, and those that a manifest lists. The
/// sum of their volumes does not tell, because a gap may be as large as an overlap.
#pragma once

#include <hocket/checkpoint/rectangle.hpp>
#include <hocket/core/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace checkpoint {

/// What rectangles of one tensor have.
struct cover {
  std::uint64_t elements = 0;                                    ///< sum of their volumes, unless two overlap
  std::optional<std::pair<std::size_t, std::size_t>> overlap{};  ///< indices of two that have an element in common
};

namespace detail {

inline bool overlap(const rectangle& a, const rectangle& b) noexcept {
  for (std::size_t d = 0; d < a.size.size(); ++d) {
    if (a.begin[d] + a.size[d] <= b.begin[d] || b.begin[d] + b.size[d] <= a.begin[d]) return false;
  }
  return !a.is_empty() && !b.is_empty();
}

/// The dimension in which the rectangles have the most different begins, so that few of them are active at once.
inline std::size_t dimension_of_sweep(std::span<const rectangle* const> all) {
  std::size_t best = 0, most = 0;
  const std::size_t dimensions = all.empty() ? 0 : all.front()->begin.size();
  std::vector<std::uint64_t> begins(all.size());
  for (std::size_t d = 0; d < dimensions; ++d) {
    std::transform(all.begin(), all.end(), begins.begin(), [&](const rectangle* each) { return each->begin[d]; });
    std::sort(begins.begin(), begins.end());
    const auto different = static_cast<std::size_t>(std::unique(begins.begin(), begins.end()) - begins.begin());
    if (different > most) {
      best = d;
      most = different;
    }
  }
  return best;
}

}  // namespace detail

/// Compares rectangles of one tensor, all of its number of dimensions and within it, with each other. They have each of
/// its elements once if none overlap and `elements` is its volume. Cost: O(n log n) for n rectangles that divide one
/// dimension.
inline cover cover_of(std::span<const rectangle* const> all) {
  cover result;
  const std::size_t d = detail::dimension_of_sweep(all);
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return d < all[a]->begin.size() && all[a]->begin[d] < all[b]->begin[d];
  });
  std::vector<std::size_t> active;  // those that may have elements in common with the next one
  for (const std::size_t next : order) {
    const rectangle& here = *all[next];
    if (here.is_empty()) continue;
    std::erase_if(active, [&](std::size_t before) {
      return !here.size.empty() && all[before]->begin[d] + all[before]->size[d] <= here.begin[d];
    });
    for (const std::size_t before : active) {
      if (!detail::overlap(*all[before], here)) continue;
      result.overlap = {before, next};
      return result;
    }
    active.push_back(next);
    result.elements += here.volume();
  }
  return result;
}

}  // namespace checkpoint
HOCKET_END_NAMESPACE
