// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The valid extents of a mesh for a number of ranks, which an error lists if the user passes other extents.
#pragma once

#include <hocket/core/config.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Calls `found(extents)` for every factorization of `ranks` into `extents.size()` factors. Positive factors of
/// `extents` remain unchanged.
template <class Found>
void for_each_factorisation(int ranks, std::vector<int>& extents, std::size_t next, const Found& found) {
  if (next == extents.size()) {
    if (ranks == 1) found(extents);
    return;
  }
  if (const int fixed = extents[next]; fixed > 0) {
    if (ranks % fixed == 0) for_each_factorisation(ranks / fixed, extents, next + 1, found);
    return;
  }
  for (int factor = 1; factor <= ranks; ++factor) {
    if (ranks % factor != 0) continue;
    extents[next] = factor;
    for_each_factorisation(ranks / factor, extents, next + 1, found);
  }
  extents[next] = 0;
}

/// Returns at most `most` factorizations of `ranks`, those nearest to `wanted` first. `fixed` has a positive number for
/// each extent that can't change, and 0 elsewhere.
HOCKET_COLD inline std::vector<std::vector<int>> nearest_factorisations(int ranks, const std::vector<int>& wanted,
                                                                        std::vector<int> fixed, std::size_t most) {
  std::vector<std::vector<int>> all;
  for_each_factorisation(ranks, fixed, 0, [&](const std::vector<int>& each) { all.push_back(each); });
  const auto distance = [&](const std::vector<int>& extents) {
    double sum = 0;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      sum += std::abs(std::log(static_cast<double>(extents[i]) / std::max(wanted[i], 1)));
    }
    return sum;
  };
  // Selection sort, because a general sort of vectors would take longer to compile than the rest of a mesh.
  for (std::size_t i = 0; i < std::min(most, all.size()); ++i) {
    std::size_t nearest = i;
    for (std::size_t other = i + 1; other < all.size(); ++other) {
      if (distance(all[other]) < distance(all[nearest])) nearest = other;
    }
    for (; nearest > i; --nearest) all[nearest].swap(all[nearest - 1]);
  }
  if (all.size() > most) all.resize(most);
  return all;
}

}  // namespace detail
HOCKET_END_NAMESPACE
