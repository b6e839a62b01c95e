// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Programs that are no ranks connect to every port that is open, and send noise, parts of recorded connections, or all of
/// one: to the store while ranks start, and to UCX's ports while ranks start and while calls run. Start-up and calls
/// complete with right results, no process ends, and no connection remains open. What UCX can't refuse changes no result.
#include "ucx/strangers.hpp"
#include "support/catch.hpp"
#include "ucx/all_gather.hpp"
#include "ucx/observed_start.hpp"
#include "ucx/open_ports.hpp"
#include "ucx/ranks.hpp"

#include <hocket/core/platform/directory.hpp>
#include <hocket/transport/ucx/workarounds/tcp_sockets.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>

namespace {

using namespace ucx_test;

constexpr int visited_ranks = 3;

/// Number of connections of strangers to each start: 300, or the value of HOCKET_SOAK_STRANGERS.
int number_of_visits() {
  const char* const value = std::getenv("HOCKET_SOAK_STRANGERS");
  return value == nullptr ? 300 : std::atoi(value);
}

/// Runs `rank_body(where, rank)` in each of `visited_ranks` processes, and `other_body(where, findings)` in one more.
/// If `store` is set, the launcher opens the port of a store, which rank 0 inherits.
template <class RankBody, class OtherBody>
std::vector<hocket::launch::process_result> processes_with_other(const observed_start& where, bool store,
                                                                 RankBody rank_body, OtherBody other_body) {
  return hocket::launch::run_processes(
      visited_ranks + 1,
      [&](world started) {
        findings found("process " + std::to_string(started.rank));
        started.ranks = visited_ranks;
        started.timeout = 30s;
        try {
          started.rank == visited_ranks ? other_body(found) : rank_body(started, found);
        } catch (const std::exception& cause) {
          found.expect(false, cause.what());
        }
        return found.any() ? 1 : 0;
      },
      {.capture_output = true, .timeout = 90s, .directory = store ? std::string() : where.folder()});
}

/// The same, but returns a description of the failures, empty if none.
template <class RankBody, class OtherBody>
std::string run_with_other(const observed_start& where, bool store, RankBody rank_body, OtherBody other_body) {
  return hocket::launch::describe_failures(processes_with_other(where, store, rank_body, other_body));
}

void save(const std::string& name, const blob& bytes) {
  std::ofstream(name, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
}

/// Forwards until all ranks have ended their part, and saves what was recorded.
void record_until_done(const observed_start& where, std::vector<recorder*> all) {
  const auto last = std::chrono::steady_clock::now() + 30s;
  for (int rank = 0; rank < visited_ranks; ++rank) {
    while (where.read("done" + std::to_string(rank)).empty() && std::chrono::steady_clock::now() < last) {
      for (recorder* const each : all) each->step(1ms);
    }
  }
  int number = 0;
  for (const recorder* const each : all) {
    for (const blob& bytes : each->recorded()) save(where.folder() + "/recorded" + std::to_string(number++), bytes);
  }
  where.set("saved");
}

/// Makes calls like those of `observed_start::play`, with other elements: a rank that took their messages would compute wrong sums.
void make_other_calls(const communicator& comm) {
  for (int i = 0; i < 10; ++i) {
    for (const std::size_t count : {3U, 30'000U}) {
      const std::vector<int> in(count, 1000 + comm.rank());
      std::vector<int> out(count);
      hocket::all_reduce(comm, in, out);
    }
    std::vector<int> word{7};
    hocket::broadcast(comm, word, hocket::root{0});
  }
}

void end_recorded(const observed_start& where, const communicator& comm) {
  hocket::barrier(comm);
  where.set("done" + std::to_string(comm.rank()));
  where.await("saved");
}

std::vector<blob> recorded_in(const observed_start& where) {
  std::vector<blob> all;
  for (int number = 0;; ++number) {
    const std::string bytes = where.read("recorded" + std::to_string(number));
    if (bytes.empty()) return all;
    all.push_back(hocket::bootstrap::text_blob(bytes));
  }
}

/// Returns what the ranks of a genuine start have sent to their store.
std::vector<blob> record_store() {
  const observed_start where;
  CHECK(run_with_other(
            where, false,
            [&](world described, findings&) {
              described.directory.clear();
              described.token = "another";
              described.address = "127.0.0.1";
              const char* const place = described.rank == 0 ? "store" : "proxy";
              described.port = static_cast<std::uint16_t>(std::stoul(where.await(place)));
              end_recorded(where, hocket::ucx::connect(described));
            },
            [&](findings&) {
              recorder to_store;
              hocket::platform::file_descriptor unused;
              hocket::failure cause;
              if (hocket::platform::listen_on("127.0.0.1", 0, unused, cause) != 0) hocket::raise(cause);
              const std::uint16_t port = hocket::platform::local_address(unused.get()).port();
              unused.reset();
              to_store.forward_to(port);
              where.set("store", std::to_string(port));
              where.set("proxy", std::to_string(to_store.port()));
              record_until_done(where, {&to_store});
            }) == "");
  return recorded_in(where);
}

/// Replaces the port `from` by `to` in an address of UCX. Both are in network byte order.
void redirect(blob& address, std::uint16_t from, std::uint16_t to, findings& found) {
  int count = 0;
  for (std::size_t i = 0; i + sizeof from <= address.size(); ++i) {
    if (std::memcmp(&address[i], &from, sizeof from) != 0) continue;
    std::memcpy(&address[i], &to, sizeof to);
    ++count;
  }
  // In UCX's address, and in hocket's list of ports. A third place would be a coincidence, and make the address invalid.
  found.expect(count == 2, "the port is " + std::to_string(count) + " times in the address, and not twice");
}

std::string numbered(const char* name, int rank) { return name + std::to_string(rank); }

/// Returns what the ranks of a genuine start have sent to the ports of UCX.
std::vector<blob> record_ucx() {
  const observed_start where;
  shared_all_gather shared;
  CHECK(run_with_other(
            where, false,
            [&](const world& started, findings& found) {
              use(network);
              ::setenv("UCX_NET_DEVICES", "lo", 1);
              const auto port_of = [&](const char* name, int rank) {
                return static_cast<std::uint16_t>(std::stoul(where.await(numbered(name, rank))));
              };
              const auto gather = [&](byte_view mine) {
                const auto sockets = hocket::ucx::listening_sockets();
                if (!sockets.empty()) {
                  where.set(numbered("ucx", started.rank), std::to_string(sockets[0].local_address.port));
                }
                std::vector<blob> all = shared(started.rank, visited_ranks, mine);
                for (int rank = 0; rank < visited_ranks && !sockets.empty(); ++rank) {
                  blob& address = all[static_cast<std::size_t>(rank)];
                  const bool is_address = rank != started.rank && address.size() > 90;
                  if (is_address) redirect(address, port_of("ucx", rank), port_of("proxy", rank), found);
                }
                return all;
              };
              const communicator comm = hocket::ucx::connect(gather, started.rank, visited_ranks);
              make_other_calls(comm);
              end_recorded(where, comm);
            },
            [&](findings&) {
              std::array<recorder, visited_ranks> to_rank;
              std::vector<recorder*> all;
              for (int rank = 0; rank < visited_ranks; ++rank) {
                all.push_back(&to_rank[static_cast<std::size_t>(rank)]);
                where.set(numbered("proxy", rank), std::to_string(htons(all.back()->port())));
              }
              for (int rank = 0; rank < visited_ranks; ++rank) {
                const auto port = static_cast<std::uint16_t>(std::stoul(where.await(numbered("ucx", rank))));
                all[static_cast<std::size_t>(rank)]->forward_to(ntohs(port));
              }
              record_until_done(where, all);
            }) == "");
  return recorded_in(where);
}

/// The processes of a start, as seen from outside.
class visited {
 public:
  explicit visited(const observed_start& where) {
    for (int rank = 0; rank < visited_ranks; ++rank) {
      processes_.push_back(static_cast<pid_t>(std::stol(where.await(numbered("rank", rank)))));
    }
  }

  /// Waits until at least `count` ports are open, and returns these.
  std::vector<open_port> await_ports(std::size_t count) const {
    const auto last = std::chrono::steady_clock::now() + 10s;
    for (;;) {
      std::vector<open_port> all;
      for (const pid_t process : processes_) {
        const auto more = ports_of(process);
        all.insert(all.end(), more.begin(), more.end());
      }
      if (all.size() >= count) return all;
      if (std::chrono::steady_clock::now() > last) throw std::runtime_error("no ports are open");
    }
  }

  std::vector<std::size_t> descriptors() const {
    std::vector<std::size_t> counts;
    for (const pid_t process : processes_) {
      counts.push_back(hocket::platform::list_directory("/proc/" + std::to_string(process) + "/fd").size());
    }
    return counts;
  }

  /// Waits until no rank has more open descriptors than `before`.
  void expect_closed(const std::vector<std::size_t>& before, findings& found) const {
    const auto last = std::chrono::steady_clock::now() + 10s;
    std::vector<std::size_t> now = descriptors();
    const auto closed = [&] { return std::equal(now.begin(), now.end(), before.begin(), std::less_equal<>()); };
    while (!closed() && std::chrono::steady_clock::now() < last) {
      std::this_thread::sleep_for(10ms);
      now = descriptors();
    }
    for (std::size_t rank = 0; rank < now.size(); ++rank) {
      found.expect(now[rank] <= before[rank], "rank " + std::to_string(rank) + " has " + std::to_string(now[rank]) +
                                                  " descriptors after the visits, and had " +
                                                  std::to_string(before[rank]));
    }
  }

 private:
  std::vector<pid_t> processes_;
};

void await_connected(const observed_start& where) {
  for (int rank = 0; rank < visited_ranks; ++rank) where.await(numbered("connected", rank));
}

/// Visits the store while a rank is missing, and while it joins.
void visit_store(const observed_start& where, const std::vector<blob>& recorded, findings& found) {
  const visited ranks(where);
  const std::vector<open_port> ports = ranks.await_ports(1);
  std::this_thread::sleep_for(200ms);  // until the others have joined
  const std::vector<std::size_t> before = ranks.descriptors();
  strangers crowd(recorded, 1);
  int made = 0;
  for (int i = 0; i < number_of_visits(); ++i) made += crowd.visit(ports) ? 1 : 0;
  found.equal(made, number_of_visits(), "connections to the store");
  crowd.leave();
  ranks.expect_closed(before, found);
  where.set("go");
  for (int i = 0; i < number_of_visits() && where.read(numbered("connected", 0)).empty(); ++i) crowd.visit(ports);
  crowd.leave();
  await_connected(where);
  where.set("stop");
}

/// Visits UCX's ports from the time at which they are opened, and while calls run.
void visit_ucx(const observed_start& where, const std::vector<blob>& recorded, findings& found) {
  const visited ranks(where);
  where.set("go");
  const std::vector<open_port> ports = ranks.await_ports(visited_ranks);
  strangers crowd(recorded, 2);
  for (int i = 0; i < number_of_visits() / 3; ++i) crowd.visit(ports);
  crowd.leave();
  await_connected(where);
  std::this_thread::sleep_for(300ms);  // until all connections between ranks are open, and no others
  const std::vector<std::size_t> before = ranks.descriptors();
  int made = 0;
  for (int i = 0; i < number_of_visits(); ++i) made += crowd.visit(ports) ? 1 : 0;
  found.equal(made, number_of_visits(), "connections to UCX");
  crowd.leave();
  ranks.expect_closed(before, found);
  where.set("stop");
}

}  // namespace

TEST_CASE("start-up completes although strangers connect to its store, also with bytes of another start") {
  const std::vector<blob> recorded = record_store();
  CHECK(recorded.size() == visited_ranks - 1);
  for (const bool opened_by_launcher : {true, false}) {
    INFO("the launcher has opened the port: " << opened_by_launcher);
    observed_start where;
    const std::uint16_t port = [] {
      recorder free;
      return free.port();
    }();
    CHECK(run_with_other(
              where, opened_by_launcher,
              [&](world described, findings&) {
                if (!opened_by_launcher) {
                  described.directory.clear();
                  described.address = "127.0.0.1";
                  described.port = port;
                }
                where.play(described.rank, visited_ranks, described.port,
                           [&] { return hocket::ucx::connect(described); });
              },
              [&](findings& found) { visit_store(where, recorded, found); }) == "");
  }
}

TEST_CASE("calls give right results although strangers connect to UCX's ports, also with requests of another start") {
  // UCX's magic number and its request to connect. UCX trusts what follows a request, see the next case.
  constexpr std::size_t request_bytes = 45;
  std::vector<blob> requests = record_ucx();
  CHECK(requests.size() >= visited_ranks - 1);
  for (blob& each : requests) each.resize(std::min(each.size(), request_bytes));
  const observed_start where;
  CHECK(run_with_other(
            where, false,
            [&](const world& described, findings&) {
              use(network);
              where.play(described.rank, visited_ranks, 0, [&] { return hocket::ucx::connect(described); });
            },
            [&](findings& found) { visit_ucx(where, requests, found); }) == "");
}

// A program that sends whole messages of UCX to its ports can end a process (SECURITY.md), and the others report that.
TEST_CASE("messages of another start that arrive at UCX's ports are never taken for those of a rank") {
  const std::vector<blob> recorded = record_ucx();
  for (unsigned seed = 0; seed < 5; ++seed) {
    const observed_start where;
    const auto results = processes_with_other(
        where, false,
        [&](const world& described, findings&) {
          // Catch2's handlers allocate memory, and wait forever in a process that has ended within malloc.
          for (const int fatal : {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE}) std::signal(fatal, SIG_DFL);
          use(network);
          where.play(described.rank, visited_ranks, 0,
                     [&] { return hocket::ucx::connect(described, {.timeout = 3s}); });
        },
        [&](findings&) {
          const visited ranks(where);
          where.set("go");
          strangers crowd(recorded, seed);
          const std::vector<open_port> ports = ranks.await_ports(visited_ranks);
          for (int i = 0; i < 30; ++i) crowd.repeat(ports);
          std::this_thread::sleep_for(100ms);
          where.set("stop");
        });
    for (const auto& each : results) {
      CHECK_FALSE(each.timed_out);
      for (const char* wrong : {"sum of", "do not match", "data corrupted"}) {
        CHECK_THAT(each.output, !Catch::Contains(wrong));
      }
    }
  }
}
