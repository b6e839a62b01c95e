// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which ways start-up tries on which networks, and which ranks try each other.
#include "support/catch.hpp"

#include <hocket/transport/ucx/arrival.hpp>
#include <hocket/transport/ucx/connection_way.hpp>
#include <hocket/transport/ucx/trial_partners.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <initializer_list>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <arpa/inet.h>

namespace {

using hocket::platform::interface_address;
using hocket::platform::ip_address;
using hocket::ucx::network_description;
using hocket::ucx::process_identity;

process_identity process_on(std::size_t host) {
  process_identity result;
  std::to_string(host).copy(result.host, sizeof result.host);
  result.net_namespace = 7;
  return result;
}

/// Returns processes of which the first `ranks[0]` are on host 0, the next `ranks[1]` on host 1, and so on.
std::vector<process_identity> processes_on(const std::vector<std::size_t>& ranks) {
  std::vector<process_identity> result;
  for (std::size_t host = 0; host < ranks.size(); ++host) result.insert(result.end(), ranks[host], process_on(host));
  return result;
}

ip_address ip(const char* text) {
  ip_address result;
  result.family = std::string(text).find(':') == std::string::npos ? AF_INET : AF_INET6;
  REQUIRE(::inet_pton(result.family, text, result.bytes.data()) == 1);
  return result;
}

/// What a process knows of its network. `local` and `remote`: its connection to the store; empty: none.
network_description knows(std::vector<interface_address> addresses, const std::string& local = "",
                          const std::string& remote = "") {
  network_description result;
  result.addresses = std::move(addresses);
  if (!local.empty()) result.to_store = {ip(local.c_str()), ip(remote.c_str())};
  return result;
}

}  // namespace

TEST_CASE("ranks try each other both ways, and together every two hosts") {
  const std::vector<std::vector<std::size_t>> forms{{1},
                                                    {4},
                                                    {1, 1},
                                                    {2, 1},
                                                    {1, 5},
                                                    {3, 3, 3},
                                                    {1, 2, 3},
                                                    {8, 1, 8, 1},
                                                    std::vector<std::size_t>(5, 2),
                                                    std::vector<std::size_t>(40, 1),
                                                    std::vector<std::size_t>(64, 1),
                                                    std::vector<std::size_t>(100, 3)};
  for (const auto& form : forms) {
    const auto all = processes_on(form);
    const int ranks = static_cast<int>(all.size());
    INFO(form.size() << " hosts, " << ranks << " ranks");
    const auto host_of = [&](int rank) { return std::string(all[static_cast<std::size_t>(rank)].host); };
    std::vector<std::vector<int>> partners;
    for (int rank = 0; rank < ranks; ++rank) partners.push_back(hocket::ucx::trial_partners(rank, all));
    std::set<std::pair<std::string, std::string>> tried;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto& own = partners[static_cast<std::size_t>(rank)];
      CHECK(std::adjacent_find(own.begin(), own.end(), std::greater_equal<>()) == own.end());
      CHECK(std::count(own.begin(), own.end(), rank) == 0);
      if (ranks > 1) CHECK(std::count(own.begin(), own.end(), (rank + 1) % ranks) == 1);
      bool leaves_host = false;
      for (const int peer : own) {
        const auto& theirs = partners[static_cast<std::size_t>(peer)];
        CHECK(std::count(theirs.begin(), theirs.end(), rank) == 1);
        tried.emplace(host_of(rank), host_of(peer));
        leaves_host = leaves_host || host_of(rank) != host_of(peer);
      }
      CHECK(leaves_host == (form.size() > 1));
    }
    std::size_t of_hosts = 0;
    for (const auto& [from, to] : tried) of_hosts += from != to ? 1U : 0U;
    CHECK(of_hosts == form.size() * (form.size() - 1));
  }
}

TEST_CASE("a rank tries a bounded number of others, however many hosts there are") {
  const auto all = processes_on(std::vector<std::size_t>(500, 1));
  for (const int rank : {0, 1, 250, 499}) {
    CHECK(hocket::ucx::trial_partners(rank, all).size() <= 2 + 2 * hocket::ucx::most_trials);
  }
}

TEST_CASE("ways between hosts use one address family, and then the interfaces that lead to the store") {
  const interface_address four{"eth0", ip("10.0.0.1")}, other_four{"eth0", ip("10.0.0.2")};
  const interface_address six{"eth1", ip("fd00::1")}, other_six{"net1", ip("fd00::2")};
  const interface_address bridge{"docker0", ip("172.17.0.1")};
  struct expected {
    const char* devices;
    const char* families;
  };
  struct networks {
    const char* name;
    network_description first, second;
    std::vector<expected> ways;  ///< of rank 1
  };
  network_description chosen = knows({four}, "10.0.0.1", "10.0.0.1");
  chosen.user_has_chosen = true;
  const networks all[] = {
      {"IPv4", knows({four}), knows({other_four}, "10.0.0.2", "10.0.0.1"), {{"", "inet"}, {"eth0", "inet"}}},
      {"IPv6", knows({six}), knows({other_six}, "fd00::2", "fd00::1"), {{"", "inet6"}, {"net1", "inet6"}}},
      {"both",
       knows({four, six}),
       knows({other_four, other_six}, "fd00::2", "fd00::1"),
       {{"", "inet"}, {"net1", "inet6"}}},
      {"IPv4 on one host only",
       knows({four, six}),
       knows({other_six}, "fd00::2", "fd00::1"),
       {{"", "inet6"}, {"net1", "inet6"}}},
      {"no common family", knows({four}), knows({other_six}, "fd00::2", "fd00::9"), {{"", "inet"}}},
      {"a bridge",
       knows({bridge, four}),
       knows({bridge, other_four}, "10.0.0.2", "10.0.0.1"),
       {{"", "inet"}, {"eth0", "inet"}}},
      {"a store without connections", knows({four}), knows({other_four}), {{"", "inet"}}},
      {"a store behind address translation",
       knows({four}),
       knows({other_four}, "10.0.0.2", "192.0.2.1"),
       {{"", "inet"}}},
      {"a choice of the user on one rank", chosen, knows({other_four}, "10.0.0.2", "10.0.0.1"), {{"", "inet"}}},
  };
  for (const networks& each : all) {
    INFO(each.name);
    const auto ways = hocket::ucx::ways_to_connect(1, processes_on({1, 1}), {each.first, each.second});
    REQUIRE(ways.size() == each.ways.size());
    for (std::size_t i = 0; i < ways.size(); ++i) {
      CHECK(ways[i].way == hocket::ucx::connection_way::network);
      CHECK(ways[i].devices == each.ways[i].devices);
      CHECK(ways[i].families == each.ways[i].families);
    }
  }
}

TEST_CASE("a rank that has reached the store through the loopback interface uses what its neighbours use") {
  const interface_address four{"eth0", ip("10.0.0.1")}, other{"eth9", ip("10.0.0.2")};
  const auto local = knows({four}, "127.0.0.1", "127.0.1.1");
  const auto ways = hocket::ucx::ways_to_connect(1, processes_on({2, 1}),
                                                 {knows({four}), local, knows({other}, "10.0.0.2", "10.0.0.1")});
  REQUIRE(ways.size() == 4);
  CHECK(ways[1].devices == "eth0");
}

TEST_CASE("the choice of trial partners takes time in proportion to the number of hosts") {
  const auto seconds = [](std::size_t hosts) {
    const auto processes = processes_on(std::vector<std::size_t>(hosts, 1));
    double least = 1e9;
    for (int round = 0; round < 3; ++round) {
      const std::clock_t begin = std::clock();
      CHECK(!hocket::ucx::trial_partners(1, processes).empty());
      least = std::min(least, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
    }
    return least;
  };
  CHECK(seconds(20'000) < 40 * seconds(2000));
}

TEST_CASE("where ranks of a host may share memory, each way is tried again without") {
  const auto networks = std::vector(3, knows({{"eth0", ip("10.0.0.1")}}, "10.0.0.1", "10.0.0.1"));
  for (const bool shares_host : {true, false}) {
    CAPTURE(shares_host);
    const auto processes = shares_host ? processes_on({2, 1}) : processes_on({1, 1, 1});
    const auto ways = hocket::ucx::ways_to_connect(0, processes, networks);
    const std::size_t first = shares_host ? ways.size() / 2 : ways.size();
    for (std::size_t i = 0; i < ways.size(); ++i) {
      CHECK(ways[i].shares_memory == (i < first));
      if (i < first) continue;
      CHECK(ways[i].devices == ways[i - first].devices);
      CHECK(ways[i].families == ways[i - first].families);
      CHECK(ways[i].name == ways[i - first].name + ", without shared memory");
    }
  }
}

TEST_CASE("an arrival is read as it was written, and a part of it is refused") {
  hocket::ucx::arrival own = hocket::ucx::own_arrival(123);
  own.network = knows({{"eth0", ip("10.0.0.1")}, {"a-long-name-here", ip("fd00::1")}}, "10.0.0.1", "10.0.0.2");
  const auto bytes = hocket::ucx::encode_arrival(own);
  const auto read = hocket::ucx::arrival_from(bytes);
  REQUIRE(read);
  CHECK(read->staging_bytes == 123);
  CHECK(read->network.text() == "eth0 10.0.0.1, a-long-name-here fd00::1");
  CHECK(read->network.to_store.local == own.network.to_store.local);
  CHECK(read->network.to_store.remote == own.network.to_store.remote);
  CHECK(!hocket::ucx::arrival_from(hocket::bootstrap::byte_view(bytes).first(bytes.size() - 1)));
  CHECK(!hocket::ucx::arrival_from(hocket::bootstrap::byte_view(bytes).first(17)));
}
