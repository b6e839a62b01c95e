// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The ways by which UCX can connect the processes of a world, in the order in which start-up tries them.
///
/// UCX takes each address for reachable that is of an address family of its own, and chooses by bandwidth. So it may
/// choose a bridge for containers that has the same address on each host, and it ends the process ("endpoint
/// reconfiguration") if two hosts choose interfaces of different families for each other.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>
#include <hocket/transport/ucx/network_description.hpp>
#include <hocket/transport/ucx/process_identity.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/socket.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

enum class connection_way : std::uint8_t {
  memory,    ///< through shared memory of one host; no port is opened
  loopback,  ///< through the loopback interface of one host
  network    ///< through network interfaces
};

/// A way, and the settings of UCX for it on one rank. Variables of the user take precedence.
struct connection_settings {
  connection_way way = connection_way::network;
  bool shares_memory = true;  ///< whether UCX may use shared memory between ranks of one host
  std::string devices{};      ///< the interfaces that UCX may use, as UCX_NET_DEVICES; empty: all
  std::string families{};     ///< the address families that UCX may use, as UCX_TCP_AF_PRIO; empty: all
  std::string name{};         ///< "by the interfaces that UCX chooses", for errors; the same on all ranks
};

namespace detail {

/// Returns the interface by which `rank` has reached the store, or null. Rank 0 serves the store: its interface is the
/// one that another rank has connected to.
inline const platform::interface_address* interface_to_store(int rank, const std::vector<network_description>& all) {
  const network_description& own = all[static_cast<std::size_t>(rank)];
  if (rank != 0) return own.find(own.to_store.local);
  for (const network_description& each : all) {
    if (const auto* const found = own.find(each.to_store.remote)) return found;
  }
  return nullptr;
}

/// Returns the interface by which `rank`, or if it has reached the store through the loopback interface another rank in
/// the same network namespace, has reached the store; null if there is none.
inline const platform::interface_address* interface_to_others(int rank, const std::vector<process_identity>& processes,
                                                              const std::vector<network_description>& networks) {
  if (const auto* const own = interface_to_store(rank, networks)) return own;
  for (std::size_t other = 0; other < processes.size(); ++other) {
    if (!processes[other].same_network(processes[static_cast<std::size_t>(rank)])) continue;
    if (const auto* const found = interface_to_store(static_cast<int>(other), networks)) return found;
  }
  return nullptr;
}

/// Returns the address family to use: IPv6 if all processes have it, and some lack IPv4; else IPv4. A second family
/// joins no further hosts, and lets UCX choose differently at the two ends of a connection.
inline const char* common_family(const std::vector<network_description>& all) {
  const auto all_have = [&](std::uint16_t family) {
    return std::all_of(all.begin(), all.end(), [=](const auto& each) { return each.has_family(family); });
  };
  return all_have(AF_INET6) && !all_have(AF_INET) ? "inet6" : "inet";
}

/// Appends the way through the interfaces by which the ranks have reached the store, if each has one. These lead to one
/// host at least, as start-up shows.
inline void append_way_by_store(int rank, const std::vector<process_identity>& processes,
                                const std::vector<network_description>& networks,
                                std::vector<connection_settings>& ways) {
  connection_settings result;
  bool four = true, six = true;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const auto* const found = interface_to_others(static_cast<int>(i), processes, networks);
    if (found == nullptr) return;
    if (i == static_cast<std::size_t>(rank)) result.devices = found->interface_name;
    four = four && found->address.family == AF_INET;
    six = six && found->address.family == AF_INET6;
  }
  result.families = four ? "inet" : six ? "inet6" : "";
  result.name = "by the interfaces that lead to the store";
  ways.push_back(std::move(result));
}

/// Returns whether any two ranks are in one IPC namespace of one host. Whether they can share memory is another question.
inline bool some_may_share_memory(const std::vector<process_identity>& all) {
  std::vector<std::pair<std::string_view, std::uint32_t>> places;
  for (const process_identity& each : all)
    places.emplace_back(std::string_view(each.host, sizeof each.host), each.ipc_namespace);
  std::sort(places.begin(), places.end());
  return std::adjacent_find(places.begin(), places.end()) != places.end();
}

/// Appends the same ways again, without shared memory between the ranks of a host: for containers whose users,
/// namespaces or /dev/shm do not permit it.
inline void append_without_memory(std::vector<connection_settings>& ways) {
  const std::size_t count = ways.size();
  for (std::size_t i = 0; i < count; ++i) {
    connection_settings each = ways[i];
    each.shares_memory = false;
    each.name += ", without shared memory";
    ways.push_back(std::move(each));
  }
}

}  // namespace detail

/// Returns the ways by which these processes can perhaps be connected, in the order in which to try them, with the
/// settings of `rank`. The number, the order and the names are the same on all ranks.
inline std::vector<connection_settings> ways_to_connect(int rank, const std::vector<process_identity>& processes,
                                                        const std::vector<network_description>& networks) {
  const process_identity& first = processes.front();
  const auto all_have = [&](auto relation) { return std::all_of(processes.begin(), processes.end(), relation); };
  const bool one_host = all_have([&](const auto& each) { return first.same_host(each); });
  std::vector<connection_settings> ways;
  if (one_host && all_have([&](const auto& each) { return first.can_watch(each) && first.may_share_memory(each); }))
    ways.push_back({.way = connection_way::memory});
  if (one_host && all_have([&](const auto& each) { return first.same_network(each); })) {
    ways.push_back({connection_way::loopback, false, "lo", "", "by the loopback interface"});
    return ways;
  }
  const bool chosen =
      std::any_of(networks.begin(), networks.end(), [](const auto& each) { return each.user_has_chosen; });
  ways.push_back(
      {connection_way::network, true, "", detail::common_family(networks),
       chosen ? "by the interfaces that UCX_TLS and UCX_NET_DEVICES allow" : "by the interfaces that UCX chooses"});
  if (!chosen) detail::append_way_by_store(rank, processes, networks, ways);
  if (detail::some_may_share_memory(processes)) detail::append_without_memory(ways);
  return ways;
}

}  // namespace ucx
HOCKET_END_NAMESPACE
