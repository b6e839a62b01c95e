// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which pairs of ranks start-up tries before it returns a communicator.
///
/// Whether messages arrive depends on the two hosts: on their interfaces, addresses, routes and filters. So every two
/// hosts are tried by one pair of their ranks, and every rank is tried with one of another host, because ranks of one
/// host may see different interfaces. All pairs of ranks would be as many connections as an all-to-all makes.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/transport/ucx/process_identity.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// Most connections that a rank makes for the trial, besides those to its neighbours. With one rank on each host, pairs of
/// up to 64 hosts are complete, with eight ranks those of up to 512 hosts; of more hosts, evenly spaced ones are tried.
inline constexpr std::size_t most_trials = 32;

namespace detail {

/// Returns the ranks of each host, or of each network namespace if there are several on a host.
inline std::vector<std::vector<int>> ranks_by_host(const std::vector<process_identity>& all) {
  std::vector<std::vector<int>> hosts;
  std::map<std::pair<std::string_view, std::uint64_t>, std::size_t> numbers;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const process_identity& each = all[rank];
    const std::pair place(std::string_view(each.host, sizeof each.host), each.net_namespace);
    std::size_t number = hosts.size();  // of its own, if its network namespace is not known
    if (each.net_namespace != 0) number = numbers.try_emplace(place, number).first->second;
    if (number == hosts.size()) hosts.emplace_back();
    hosts[number].push_back(static_cast<int>(rank));
  }
  return hosts;
}

/// Returns the distances, in hosts, of the hosts that the rank at `index` of a host's `ranks` tries. The ranks of a host
/// together have each distance from 1 to half the number of hosts, so that all pairs of hosts are covered.
inline std::vector<std::size_t> trial_distances(std::size_t index, std::size_t ranks, std::size_t hosts) {
  const std::size_t farthest = hosts / 2;
  if (farthest == 0) return {};
  const std::size_t first = index % farthest;
  const std::size_t count = (farthest - first + ranks - 1) / ranks;
  const std::size_t taken = std::min(count, most_trials);
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < taken; ++i) result.push_back(1 + first + i * count / taken * ranks);
  return result;
}

}  // namespace detail

/// Returns the ranks with which `rank` exchanges a message at start-up, in ascending order: its neighbours in the ring
/// of all ranks, and ranks of other hosts. A rank is a partner of its partners.
inline std::vector<int> trial_partners(int rank, const std::vector<process_identity>& all) {
  const int ranks = static_cast<int>(all.size());
  std::vector<int> partners{(rank + 1) % ranks, (rank + ranks - 1) % ranks};
  const auto hosts = detail::ranks_by_host(all);
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    for (std::size_t index = 0; index < hosts[host].size(); ++index) {
      for (const std::size_t distance : detail::trial_distances(index, hosts[host].size(), hosts.size())) {
        const auto& other = hosts[(host + distance) % hosts.size()];
        const int from = hosts[host][index], to = other[index % other.size()];
        if (from == rank) partners.push_back(to);
        if (to == rank) partners.push_back(from);
      }
    }
  }
  std::sort(partners.begin(), partners.end());
  partners.erase(std::unique(partners.begin(), partners.end()), partners.end());
  std::erase(partners, rank);
  return partners;
}

}  // namespace ucx
HOCKET_END_NAMESPACE
