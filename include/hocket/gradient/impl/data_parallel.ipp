// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Definitions of <hocket/gradient/data_parallel.hpp>: functions that compare the ranks of two or three groups.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/gradient/data_parallel.hpp>

#include <algorithm>
#include <cstddef>
#include <source_location>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

HOCKET_DECL void check_crossing(const std::vector<int>& shards, const std::vector<int>& replicas, int self,
                                const std::source_location& site) {
  const auto ranks = static_cast<int>(shards.size());
  for (int rank = 0; rank < ranks; ++rank) {
    const auto found = std::find(replicas.begin(), replicas.end(), shards[static_cast<std::size_t>(rank)]);
    if (rank == self || found == replicas.end()) continue;
    raise(errc::invalid_argument,
          concat({"hybrid(shards, replicas): rank ", rank, " of the ", ranks, " shards is also rank ",
                  found - replicas.begin(), " of the ", replicas.size(),
                  " replicas, and its gradient would be added twice: the two must have only this rank in common, as in "
                  "hybrid(mesh.along<\"shard\">(), mesh.along<\"replica\">())"}),
          {.operation = "hybrid", .rank = self, .ranks = ranks, .peer = rank, .site = site});
  }
}

HOCKET_DECL bool are_all_of(std::vector<int> group, const std::vector<int>& shards, const std::vector<int>& replicas) {
  if (shards.size() * replicas.size() != group.size()) return false;
  std::sort(group.begin(), group.end());
  const auto in_group = [&](int each) { return std::binary_search(group.begin(), group.end(), each); };
  return std::all_of(shards.begin(), shards.end(), in_group) && std::all_of(replicas.begin(), replicas.end(), in_group);
}

HOCKET_DECL bool share_another(const std::vector<int>& one, const std::vector<int>& other, int self) {
  return std::any_of(one.begin(), one.end(), [&](int each) {
    return each != self && std::find(other.begin(), other.end(), each) != other.end();
  });
}

}  // namespace detail
HOCKET_END_NAMESPACE
