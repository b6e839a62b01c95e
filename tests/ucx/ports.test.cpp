// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which ports are open during each kind of start, and while calls run: those that docs/collectives.md names, and no
/// others. One process observes the others from outside, as `ss -ltn` does.
#include "support/catch.hpp"
#include "support/namespaces.hpp"
#include "ucx/all_gather.hpp"
#include "ucx/observed_start.hpp"
#include "ucx/open_ports.hpp"
#include "ucx/ranks.hpp"

#include <hocket/bootstrap/environment.hpp>
#include <hocket/core/platform/socket.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <unistd.h>

namespace {

using namespace ucx_test;

constexpr int ranks_of_a_start = 3;

/// Addresses of this host by which other hosts may reach it, and of the loopback interface.
std::vector<std::string> own_addresses() {
  std::vector<std::string> found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return found;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET || (each->ifa_flags & IFF_UP) == 0) continue;
    char digits[9];
    std::snprintf(digits, sizeof digits, "%08X", reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr.s_addr);
    found.push_back(host_of(digits));
  }
  ::freeifaddrs(list);
  return found;
}

/// Returns an address that is not on the loopback interface; empty if there is none.
std::string outer_address() {
  for (const std::string& each : own_addresses()) {
    if (!each.starts_with("127.")) return each;
  }
  return {};
}

/// Returns a port at which no process listens now.
std::uint16_t free_port() {
  hocket::platform::file_descriptor listener;
  hocket::failure cause;
  if (hocket::platform::listen_on("", 0, listener, cause) != 0) hocket::raise(cause);
  return hocket::platform::local_address(listener.get()).port();
}

// ── The kinds of start ───────────────────────────────────────────────────────────────────────────────────────────────

/// What the processes of one start have in common.
struct start_place {
  observed_start where;
  std::uint16_t port = free_port();
  std::string outer = outer_address();
  shared_all_gather all_gather;
};

void set_variables(const std::vector<std::pair<const char*, std::string>>& variables) {
  for (const auto& [name, value] : variables) ::setenv(name, value.c_str(), 1);
}

/// Connects by the variables of the process, and makes calls until the observer has seen enough.
void connect_by_variables(observed_start& where) {
  const world from = hocket::bootstrap::read_environment();
  where.play(from.rank, from.ranks, from.port, [] { return hocket::ucx::connect(); });
}

void start_by_store(start_place& in, int rank, const std::string& store) {
  set_variables({{"HOCKET_RANK", std::to_string(rank)},
                 {"HOCKET_RANKS", std::to_string(ranks_of_a_start)},
                 {"HOCKET_STORE", store},
                 {"HOCKET_TOKEN", "ports"}});
  connect_by_variables(in.where);
}

void start_by_torchrun(start_place& in, int rank, bool agent_serves) {
  set_variables({{"RANK", std::to_string(rank)},
                 {"WORLD_SIZE", std::to_string(ranks_of_a_start)},
                 {"MASTER_ADDR", "127.0.0.1"},
                 {"MASTER_PORT", std::to_string(agent_serves ? in.port - 1 : in.port)},
                 {"TORCHELASTIC_USE_AGENT_STORE", agent_serves ? "True" : "False"},
                 {"TORCHELASTIC_RUN_ID", "ports"}});
  connect_by_variables(in.where);
}

void start_by_description(start_place& in, int rank, world described) {
  described.rank = rank;
  described.ranks = ranks_of_a_start;
  described.token = "ports";
  in.where.play(rank, ranks_of_a_start, described.port, [&] { return hocket::ucx::connect(described); });
}

/// Runs this program once for each rank, by `spawn`, in a process that is no rank.
void start_by_spawn(start_place& in, hocket::launch::spawn_options options) {
  in.where.set("launcher", std::to_string(::getpid()));
  set_variables({{observed_start::variable, in.where.folder()}});
  if (hocket::launch::spawn(ranks_of_a_start, {"/proc/self/exe", "[port_rank]"}, options) != 0) {
    throw std::runtime_error("a rank that spawn has started failed");
  }
}

/// Replaces this process by an mpirun that runs this program. It may be that of Open MPI or of MPICH.
void start_by_mpirun(start_place& in) {
  char self[4096] = {};
  if (::readlink("/proc/self/exe", self, sizeof self - 1) < 0) throw std::runtime_error("no /proc/self/exe");
  set_variables({{observed_start::variable, in.where.folder()},
                 {"HOCKET_STORE", "tcp://127.0.0.1:" + std::to_string(in.port)},
                 {"HOCKET_TOKEN", "ports"},
                 {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                 {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                 {"OMPI_MCA_rmaps_base_oversubscribe", "1"}});
  const std::string ranks = std::to_string(ranks_of_a_start);
  ::execlp("mpirun", "mpirun", "-n", ranks.c_str(), self, "[port_rank]", static_cast<char*>(nullptr));
  throw std::runtime_error("mpirun can't be run");
}

bool has_mpirun() { return std::system("mpirun --version >/dev/null 2>&1") == 0; }

enum class store_port { none, loopback, every_interface };

/// One way to start ranks. `act` runs in each of `processes` processes.
struct start_kind {
  const char* name;
  int processes;
  store_port opens;  ///< the port that rank 0 opens until all ranks have connected
  void (*act)(start_place& in, int process);
  bool (*is_possible)() = nullptr;  ///< null: always
};

constexpr start_kind start_kinds[] = {
    {"launch::spawn", 1, store_port::loopback, [](start_place& in, int) { start_by_spawn(in, {}); }},
    {"launch::spawn with a directory", 1, store_port::none,
     [](start_place& in, int) {
       hocket::launch::spawn_options options;
       options.directory = in.where.folder();
       start_by_spawn(in, options);
     }},
    {"HOCKET_STORE=tcp://127.0.0.1:PORT", 3, store_port::loopback,
     [](start_place& in, int rank) { start_by_store(in, rank, "tcp://127.0.0.1:" + std::to_string(in.port)); }},
    {"HOCKET_STORE=tcp://HOST:PORT", 3, store_port::every_interface,
     [](start_place& in, int rank) { start_by_store(in, rank, "tcp://" + in.outer + ':' + std::to_string(in.port)); },
     [] { return !outer_address().empty(); }},
    {"HOCKET_STORE=dir://", 3, store_port::none,
     [](start_place& in, int rank) { start_by_store(in, rank, "dir://" + in.where.folder() + "/store"); }},
    {"variables of torchrun", 3, store_port::loopback,
     [](start_place& in, int rank) { start_by_torchrun(in, rank, false); }},
    {"variables of torchrun whose agent serves", 3, store_port::loopback,
     [](start_place& in, int rank) { start_by_torchrun(in, rank, true); }},
    {"mpirun with HOCKET_STORE", 1, store_port::loopback, [](start_place& in, int) { start_by_mpirun(in); },
     has_mpirun},
    {"connect(all_gather, rank, ranks)", 3, store_port::none,
     [](start_place& in, int rank) {
       const auto gather = [&](hocket::bootstrap::byte_view mine) {
         return in.all_gather(rank, ranks_of_a_start, mine);
       };
       in.where.play(rank, ranks_of_a_start, 0, [&] { return hocket::ucx::connect(gather, rank, ranks_of_a_start); });
     }},
    {"connect(world) with an address", 3, store_port::loopback,
     [](start_place& in, int rank) {
       world described;
       described.address = "127.0.0.1";
       described.port = in.port;
       start_by_description(in, rank, described);
     }},
    {"connect(world) with a directory", 3, store_port::none,
     [](start_place& in, int rank) {
       world described;
       described.directory = in.where.folder() + "/store";
       start_by_description(in, rank, described);
     }},
};

// ── What is open while calls run ─────────────────────────────────────────────────────────────────────────────────────

/// What connects the ranks, and the hosts on which each of them listens then.
struct connection_kind {
  const char* name;
  bool (*prepare)();  ///< called in each rank before it starts; false: this user has not the rights
  std::vector<std::string> (*hosts)();
};

constexpr connection_kind shared_connection{"shared memory", [] { return ::unsetenv("UCX_TLS") == 0; },
                                            [] { return std::vector<std::string>(); }};
constexpr connection_kind connections_of_one_host[] = {
    {"no shared memory", [] { return ::unsetenv("UCX_TLS") == 0 && ::unshare(CLONE_NEWUSER) == 0; },
     [] { return std::vector<std::string>{"127.0.0.1"}; }},
    {"UCX_TLS=tcp,self and UCX_NET_DEVICES=lo",
     [] { return ::setenv("UCX_TLS", "tcp,self", 1) == 0 && ::setenv("UCX_NET_DEVICES", "lo", 1) == 0; },
     [] { return std::vector<std::string>{"127.0.0.1"}; }},
    {"UCX_TLS=tcp,self", [] { return ::setenv("UCX_TLS", "tcp,self", 1) == 0; }, [] { return own_addresses(); }},
};

// ── The observer ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// Ports as text, with "store" for the number of the store's port and "any" for others, which the system picks.
using port_list = std::multiset<std::string>;

std::string text_of_ports(const port_list& ports) {
  std::string text;
  for (const std::string& each : ports) text += (text.empty() ? "" : ", ") + each;
  return ports.empty() ? "no port" : text;
}

class port_observer {
 public:
  explicit port_observer(observed_start& where) : start_(where) {
    for (int rank = 0; rank < ranks_of_a_start; ++rank) {
      const std::string about = start_.await("rank" + std::to_string(rank));
      processes_.emplace_back("rank " + std::to_string(rank), static_cast<pid_t>(std::stol(about)));
      store_ = static_cast<std::uint16_t>(std::stoul(about.substr(about.find(' '))));
    }
    const std::string launcher = start_.read("launcher");
    if (!launcher.empty()) processes_.emplace_back("launcher", static_cast<pid_t>(std::stol(launcher)));
  }

  /// Waits until exactly `expected` are open, and checks that this remains so for 100 ms.
  void expect(const port_list& expected, const std::string& when, findings& found) const {
    const auto last = std::chrono::steady_clock::now() + 10s;
    while (open() != expected && std::chrono::steady_clock::now() < last) std::this_thread::sleep_for(2ms);
    const auto end = std::chrono::steady_clock::now() + 100ms;
    port_list now = open();
    while (now == expected && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(5ms);
      now = open();
    }
    found.expect(now == expected, when + ": open are " + text_of_ports(now) + " instead of " + text_of_ports(expected));
  }

  /// Collects all ports that are open at some time until all ranks are connected.
  port_list until_connected() const {
    port_list seen;
    for (int rank = 0; rank < ranks_of_a_start; ++rank) {
      const auto last = std::chrono::steady_clock::now() + 20s;
      while (start_.read("connected" + std::to_string(rank)).empty() && std::chrono::steady_clock::now() < last) {
        for (const std::string& each : open()) {
          if (!seen.contains(each)) seen.insert(each);
        }
      }
    }
    return seen;
  }

 private:
  port_list open() const {
    port_list found;
    for (const auto& [name, process] : processes_) {
      for (const open_port& each : ports_of(process)) {
        found.insert(name + " at " + each.host + (each.port == store_ ? ":store" : ":any"));
      }
    }
    return found;
  }

  observed_start& start_;
  std::vector<std::pair<std::string, pid_t>> processes_;
  std::uint16_t store_ = 0;
};

void observe_start(observed_start& where, const start_kind& kind, const connection_kind& connection, findings& found) {
  const port_observer all(where);
  port_list before, during;
  if (kind.opens == store_port::loopback) before.insert("rank 0 at 127.0.0.1:store");
  if (kind.opens == store_port::every_interface) before.insert("rank 0 at *:store");
  for (int rank = 0; rank < ranks_of_a_start; ++rank) {
    for (const std::string& host : connection.hosts())
      during.insert("rank " + std::to_string(rank) + " at " + host + ":any");
  }
  all.expect(before, "while a rank is missing", found);
  where.set("go");
  for (const std::string& each : all.until_connected()) {
    found.expect(before.contains(each) || during.contains(each), "during start-up: " + each);
  }
  all.expect(during, "while calls run", found);
  where.set("stop");
}

/// Starts ranks, and observes them from one more process.
void check_ports(const start_kind& kind, const connection_kind& connection) {
  INFO(kind.name << " over " << connection.name);
  if (kind.is_possible != nullptr && !kind.is_possible()) {
    std::printf("skipped: the ports of a start by %s, which is not possible here\n", kind.name);
    return;
  }
  start_place place;
  const auto results =
      hocket::launch::run_processes(kind.processes + 1,
                                    [&](const world& outer) {
                                      findings found("process " + std::to_string(outer.rank));
                                      for (const auto& [name, value] : hocket::launch::detail::variables_of(outer))
                                        ::unsetenv(name.c_str());
                                      try {
                                        if (outer.rank == kind.processes) {
                                          observe_start(place.where, kind, connection, found);
                                        } else if (!connection.prepare()) {
                                          return hocket_test::lacks_rights;
                                        } else {
                                          kind.act(place, outer.rank);
                                        }
                                      } catch (const std::exception& cause) {
                                        found.expect(false, cause.what());
                                      }
                                      return found.any() ? 1 : 0;
                                    },
                                    // Ranks that meet in a directory inherit no socket.
                                    {.capture_output = true, .timeout = 60s, .directory = place.where.folder()});
  if (results[0].exit_code == hocket_test::lacks_rights) {
    hocket_test::skip_without_rights(std::string("the ports of ranks with ") + connection.name);
    return;
  }
  CHECK(hocket::launch::describe_failures(results) == "");
}

}  // namespace

TEST_CASE("each kind of start opens the store's port at most, and no port remains open if ranks share memory") {
  for (const start_kind& each : start_kinds) check_ports(each, shared_connection);
}

TEST_CASE("ranks that share no memory listen on the loopback interface, or where UCX's variables say") {
  for (const connection_kind& each : connections_of_one_host) check_ports(start_kinds[2], each);
}

TEST_CASE("a rank that another program has started", "[.port_rank]") {
  observed_start where(std::getenv(observed_start::variable));
  connect_by_variables(where);
}
