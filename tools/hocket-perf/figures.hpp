// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Measured times, and the figures derived from them.
#pragma once

#include "distribution.hpp"
#include "settings.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace perf {

/// The measurement of one size in one placement.
struct figures {
  std::vector<double> seconds;         ///< one entry per iteration, in order
  std::optional<std::uint64_t> wrong;  ///< elements on all ranks; none: not checked
  std::vector<double> rank_means{};    ///< mean of each rank's own times, in seconds
};

/// Returns the smallest entry that is not less than `share` of all entries: 0.5 gives the (lower) median.
inline double percentile(std::vector<double> of, double share) {
  if (of.empty()) return 0;
  const double place = std::ceil(share * static_cast<double>(of.size()));
  const std::size_t index = std::clamp<std::size_t>(static_cast<std::size_t>(place), 1, of.size()) - 1;
  std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(index), of.end());
  return of[index];
}

/// Returns the factor that converts a collective's bytes per second into bus bandwidth, which can be compared with the
/// speed of the links for any number of ranks.
inline double bus_factor(collective what, int ranks) {
  const double n = ranks;
  switch (what) {
    case collective::all_reduce: return 2 * (n - 1) / n;
    case collective::reduce_scatter:
    case collective::all_gather:
    case collective::all_to_all:
    case collective::gather:
    case collective::scatter: return (n - 1) / n;
    case collective::broadcast:
    case collective::reduce:
    case collective::send_recv: return 1;
    case collective::barrier:
    case collective::reduce_scatter_v:
    case collective::all_gather_v:
    case collective::all_to_all_v:
    case collective::gather_v:
    case collective::scatter_v: return 0;  // depends on the lengths of the blocks: busiest_share
  }
  return 0;
}

/// Returns the number of blocks that the reported size consists of.
inline std::size_t blocks_of(collective what, int ranks) {
  const bool many = what == collective::reduce_scatter || what == collective::all_gather ||
                    what == collective::all_to_all || what == collective::gather || what == collective::scatter ||
                    takes_counts(what);
  return many ? static_cast<std::size_t>(ranks) : 1;
}

/// Returns the number of elements per block, or their mean if the call has counts, if all blocks together have `bytes`
/// bytes: at least 1, but 0 for 0 bytes.
inline std::size_t count_of(collective what, int ranks, std::size_t element_size, std::size_t bytes) {
  if (bytes == 0 || what == collective::barrier) return 0;
  return std::max<std::size_t>(1, bytes / element_size / blocks_of(what, ranks));
}

/// Returns the error text for too large a size: states how much memory a size of `bytes` takes.
inline std::string memory_text(int ranks, std::size_t bytes) {
  return "out of memory: a size of " + std::to_string(bytes) + " bytes takes 2 buffers of " + std::to_string(bytes) +
         " bytes on each of " + std::to_string(ranks) + " ranks; pass a smaller -e,--maxbytes";
}

/// One line of the table.
struct row {
  collective what = collective::all_reduce;
  datatype type = datatype::float32;
  operation op = operation::sum;
  int root = -1;
  int ranks = 1;
  std::size_t count = 0;
  std::size_t bytes = 0;
  std::vector<std::size_t> lengths{};  ///< elements in the block of each rank; empty: blocks are equal
  std::optional<figures> out_of_place;
  std::optional<figures> in_place;

  /// Returns the bandwidth in 1e9 bytes per second.
  double algorithm_bandwidth(const figures& of) const {
    return static_cast<double>(bytes) / percentile(of.seconds, 0.5) / 1e9;
  }
  double bus_bandwidth(const figures& of) const {
    return algorithm_bandwidth(of) * (takes_counts(what) ? busiest_share(what, lengths) : bus_factor(what, ranks));
  }
};

}  // namespace perf
