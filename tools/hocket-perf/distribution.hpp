// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How the elements of a call with counts are distributed over the blocks of the ranks, and how much the busiest rank
/// must then send or receive.
#pragma once

#include "settings.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace perf {

/// Returns the number of elements in each rank's block, `total` together.
inline std::vector<std::size_t> block_lengths(distribution how, int ranks, std::size_t total) {
  const auto n = static_cast<std::size_t>(ranks);
  std::vector<std::size_t> lengths(n, how == distribution::even ? total / n : 0);
  if (how == distribution::even) {
    for (std::size_t i = 0; i < total % n; ++i) ++lengths[i];
  } else if (how == distribution::single) {
    lengths.back() = total;
  } else {
    // The ends of the blocks are rounded, not their lengths, so that the lengths add up to the total.
    const auto end = [&](std::size_t block) {
      const double share = static_cast<double>(block * (block + 1)) / static_cast<double>(n * (n + 1));
      return block == n ? total : static_cast<std::size_t>(static_cast<double>(total) * share);
    };
    for (std::size_t i = 0; i < n; ++i) lengths[i] = end(i + 1) - end(i);
  }
  return lengths;
}

/// Returns the sum of the lengths of the blocks before `block`.
inline std::size_t block_offset(const std::vector<std::size_t>& lengths, std::size_t block) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < block; ++i) sum += lengths[i];
  return sum;
}

/// Returns the elements that the busiest rank must send or receive, as a share of all blocks. With equal blocks this is
/// (n - 1) / n, the factor of bus bandwidth for calls without counts.
inline double busiest_share(collective what, const std::vector<std::size_t>& lengths) {
  const std::size_t total = block_offset(lengths, lengths.size());
  if (total == 0) return 0;
  std::size_t busiest = total - *std::min_element(lengths.begin(), lengths.end());
  if (what == collective::all_to_all_v) {
    // Every rank sends all blocks but its own, and receives its own block's length from all others.
    const std::size_t longest = *std::max_element(lengths.begin(), lengths.end());
    busiest = std::max(busiest, longest * (lengths.size() - 1));
  }
  return static_cast<double>(busiest) / static_cast<double>(total);
}

/// Describes the distribution for `ranks` ranks.
inline std::string describe(distribution how, int ranks) {
  const std::string last = std::to_string(ranks - 1);
  switch (how) {
    case distribution::even: return "even: all blocks have the same length";
    case distribution::linear:
      return "linear: the block of rank r has r + 1 of " + std::to_string(ranks * (ranks + 1) / 2) +
             " parts, so that of rank " + last + " is " + std::to_string(ranks) + " times as long as that of rank 0";
    case distribution::single: return "single: rank " + last + "'s block has all elements, the others have none";
  }
  return "unknown";
}

}  // namespace perf
