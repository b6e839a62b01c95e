// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Two hosts on one machine: each has a separate network, shared memory, mounts and process numbers, in namespaces that
/// the kernel removes with their last process. A pair of virtual interfaces connects each host with the cable.
#pragma once

#include "support/catch.hpp"
#include "two_hosts/cable.hpp"
#include "ucx/ranks.hpp"

#include <hocket/bootstrap/launch.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/directory.hpp>
#include <hocket/core/platform/socket.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <net/if.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace two_hosts {

using namespace std::chrono_literals;

/// Shared memory of all processes of one test. The cable does not transport it.
struct blackboard {
  cable_settings cable;
  std::atomic<bool> connected{false};  ///< the cable works
  std::atomic<int> hosts_up{0};
  std::atomic<int> arrived{0};

  /// Waits until all `ranks` have called this function for the `round`-th time.
  void meet(int ranks, int round) {
    arrived.fetch_add(1);
    wait_until([&] { return arrived.load() >= ranks * round; }, "other ranks have not arrived here");
  }

  template <class Condition>
  static void wait_until(Condition holds, const char* complaint) {
    const auto last = hocket::deadline::after(40s);
    while (!holds()) {
      if (last.passed()) throw std::runtime_error(complaint);
      std::this_thread::sleep_for(1ms);
    }
  }
};

class shared_blackboard {
 public:
  shared_blackboard()
      : memory_(::mmap(nullptr, sizeof(blackboard), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    new (memory_) blackboard;
  }
  shared_blackboard(const shared_blackboard&) = delete;
  shared_blackboard& operator=(const shared_blackboard&) = delete;
  ~shared_blackboard() { ::munmap(memory_, sizeof(blackboard)); }

  blackboard& operator*() const noexcept { return *static_cast<blackboard*>(memory_); }

 private:
  void* const memory_;
};

/// The number of ranks on each host. The first host has the lower ranks.
struct shape {
  std::array<int, 2> ranks_on;

  int ranks() const noexcept { return ranks_on[0] + ranks_on[1]; }
  int host_of(int rank) const noexcept { return rank < ranks_on[0] ? 0 : 1; }
};

/// The network of the two hosts. eth0 of both is connected by the cable.
struct host_network {
  std::string name = "IPv4";
  /// Shell commands that each host runs as root before its interfaces start; $host is 1 or 2.
  std::string set_up = "ip addr add 10.77.0.$host/24 dev eth0";
  std::string store_host = "10.77.0.1";  ///< where rank 0 serves the store: an address or a name
  bool has_second_link = false;          ///< eth1 of both hosts is connected too, by a link that never fails
  int mtu = 1500;                        ///< longest packet of all these interfaces, and of the cable's
};

namespace detail {

inline void need(bool fine, const char* what) {
  if (!fine) hocket::raise(hocket::platform::system_failure(std::string("cannot ") + what, errno));
}

inline void run_command(const std::string& command) {
  if (std::system(command.c_str()) != 0) throw std::runtime_error("failed command: " + command);
}

inline void separate(bool memory_and_processes_too) {
  const int all = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWNS | CLONE_NEWPID;
  need(::unshare(memory_and_processes_too ? all : CLONE_NEWNET) == 0, "make namespaces");
}

/// Mounts /sys, /proc and /dev/shm for the namespaces of this process, in which UCX searches devices and processes.
inline void mount_own() {
  need(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "keep mounts private");
  need(::mount("proc", "/proc", "proc", 0, nullptr) == 0, "mount /proc");
  need(::mount("sysfs", "/sys", "sysfs", 0, nullptr) == 0, "mount /sys");
  need(::mount("tmpfs", "/dev/shm", "tmpfs", 0, nullptr) == 0, "mount /dev/shm");
}

/// Makes a pair of interfaces: `name` in this network namespace, eth0 in that of the process `owner`. Their indices
/// differ, because otherwise the kernel takes a second longer to report to one that the other is up.
inline void make_pair(const std::string& name, int host, pid_t owner, int mtu) {
  const std::string packets = " mtu " + std::to_string(mtu);
  run_command("ip link add " + name + " index " + std::to_string(11 + host) + packets +
              " type veth peer name eth0 index 20 netns " + std::to_string(owner) + packets);
  run_command("ip link set " + name + " up");
}

inline void set_up_network(int host, const host_network& wanted) {
  run_command("set -e; host=" + std::to_string(host + 1) + "; ip link set lo up; " + wanted.set_up +
              "; for each in /sys/class/net/eth*; do ip link set ${each##*/} up; done");
}

/// Returns whether all interfaces that have a carrier are in operation, which the kernel reports up to a second later.
inline bool network_works() {
  const std::string all = "/sys/class/net/";
  const auto waits = [&](const std::string& name) {
    const bool has_carrier = hocket::bootstrap::detail::text_of(all + name + "/carrier") == "1\n";
    const std::string state = hocket::bootstrap::detail::text_of(all + name + "/operstate");
    return has_carrier && state != "up\n" && state != "unknown\n";
  };
  const std::vector<std::string> names = hocket::platform::list_directory(all);
  return std::none_of(names.begin(), names.end(), waits);
}

/// Runs `body()` in a forked process, which ends with this one. Returns its status as a shell reports it.
template <class Body>
int run_forked(Body body) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  need(child >= 0, "start a process");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    int code = 125;
    try {
      code = body();
    } catch (const std::exception& cause) {
      std::fprintf(stderr, "%s\n", cause.what());
    }
    std::fflush(nullptr);
    ::_exit(code);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace detail

/// The cable, and the processes of both hosts.
class laboratory {
 public:
  laboratory(const shape& form, const host_network& wanted, blackboard& board)
      : form_(form), network_(wanted), board_(board) {}

  /// Runs `body(world, findings, board)` on all ranks. Returns 0 if there were no failures; prints failures on stderr.
  template <class Body>
  int run(Body body, std::chrono::nanoseconds timeout) {
    detail::separate(false);
    ::setpriority(PRIO_PROCESS, 0, -10);  // because ranks that wait keep all cores busy
    hocket::launch::detail::process_group hosts(hocket::launch::detail::output_handling::inherit);
    std::array<pid_t, 2> owners{};
    for (int host = 0; host < 2; ++host) {
      hocket::platform::pipe_ends pipe = hocket::platform::make_pipe();
      hosts.start([&] {
        hosts.abandon();
        return run_host(host, pipe.write, body, timeout);
      });
      pipe.write.reset();
      pid_t& owner = owners[static_cast<std::size_t>(host)];
      detail::need(::read(pipe.read.get(), &owner, sizeof owner) == sizeof owner, "start a host");
      detail::make_pair(interfaces_[static_cast<std::size_t>(host)], host, owner, network_.mtu);
    }
    if (network_.has_second_link) {
      const std::string packets = " mtu " + std::to_string(network_.mtu);
      detail::run_command("ip link add eth1 netns " + std::to_string(owners[0]) + packets +
                          " type veth peer name eth1 netns " + std::to_string(owners[1]) + packets);
    }
    join(hosts);
    return hosts.result(0).succeeded() && hosts.result(1).succeeded() ? 0 : 1;
  }

 private:
  void join(hocket::launch::detail::process_group& hosts) {
    cable between(interfaces_, board_.cable);
    board_.connected.store(true);
    bool plugged = true;
    while (hosts.count_running() > 0) {
      hosts.step(hocket::deadline(std::min(between.due(), hocket::deadline::after(10ms).when())), between.descriptor());
      if (const bool wanted = board_.cable.plugged.load(); wanted != plugged) {
        detail::run_command(std::string("ip link set ") + interfaces_[0] + (wanted ? " up" : " down"));
        plugged = wanted;
      }
      between.carry();
    }
  }

  template <class Body>
  int run_host(int host, const hocket::platform::file_descriptor& tell, Body& body, std::chrono::nanoseconds timeout) {
    ::setpriority(PRIO_PROCESS, 0, 0);
    detail::separate(true);
    const pid_t own = ::getpid();
    detail::need(::write(tell.get(), &own, sizeof own) == sizeof own, "tell the number of a process");
    return detail::run_forked([&] {  // the first process of its namespace: all others end with it
      detail::mount_own();
      blackboard::wait_until([&] { return board_.connected.load(); }, "the cable was not connected");
      detail::set_up_network(host, network_);
      board_.hosts_up.fetch_add(1);
      blackboard::wait_until([&] { return board_.hosts_up.load() == 2; }, "the other host did not start");
      blackboard::wait_until(&detail::network_works, "the network did not start");
      hocket::launch::process_options options;
      options.capture_output = true;
      options.timeout = timeout;
      const int first = host == 0 ? 0 : form_.ranks_on[0];
      const auto results = hocket::launch::run_processes(
          form_.ranks_on[static_cast<std::size_t>(host)],
          [&](const ucx_test::world& local) { return run_rank(first + local.rank, local, body); }, options);
      const std::string text = hocket::launch::describe_failures(results);
      if (!text.empty()) std::fprintf(stderr, "host %d, whose ranks begin with %d:\n%s", host, first, text.c_str());
      for (const auto& each : results) {
        if (each.succeeded()) std::fputs(each.output.c_str(), stdout);
      }
      return text.empty() ? 0 : 1;
    });
  }

  template <class Body>
  int run_rank(int rank, const ucx_test::world& local, Body& body) {
    ucx_test::findings found("rank " + std::to_string(rank));
    ucx_test::world where;
    where.rank = rank;
    where.ranks = form_.ranks();
    where.local_rank = local.rank;
    where.local_ranks = local.ranks;
    where.address = network_.store_host;
    where.port = 29500;
    where.token = "two hosts";
    where.source = "test";
    where.timeout = 30s;
    try {
      body(where, found, board_);
    } catch (const std::exception& cause) {
      found.expect(false, cause.what());
    }
    return found.any() ? 1 : 0;
  }

  static constexpr std::array<const char*, 2> interfaces_{"left", "right"};
  const shape form_;
  const host_network network_;
  blackboard& board_;
};

/// Returns why two hosts can't be made on this machine; empty if they can.
inline const std::string& obstacle() {
  static const std::string found = [] {
    hocket::launch::process_options options;
    options.capture_output = true;
    const auto results = hocket::launch::run_processes(
        1,
        [](const ucx_test::world&) {
          if (::geteuid() != 0) throw std::runtime_error("only root can make namespaces");
          detail::separate(false);
          detail::run_command("ip link add left type veth peer name right");
          cable_settings settings;
          cable({"left", "right"}, settings);
          detail::separate(true);
          detail::mount_own();
          return 0;
        },
        options);
    return results[0].succeeded() ? std::string() : "(" + results[0].output + ")";
  }();
  return found;
}

/// Returns whether a test must be skipped, and prints the reason.
inline bool cannot_run() {
  if (obstacle().empty()) return false;
  WARN("skipped: no two hosts can be made here: " << obstacle());
  return true;
}

/// Runs `body(world, findings, board)` on each rank of two hosts. Returns a description of the failures, empty if none.
template <class Body>
std::string run(const shape& form, Body body, std::chrono::nanoseconds timeout = 80s, const host_network& wanted = {}) {
  const shared_blackboard board;
  hocket::launch::process_options options;
  options.capture_output = true;
  options.timeout = timeout + 10s;
  const auto results = hocket::launch::run_processes(
      1, [&](const ucx_test::world&) { return laboratory(form, wanted, *board).run(body, timeout); }, options);
  const std::string text = hocket::launch::describe_failures(results);
  if (text.empty()) std::fputs(results[0].output.c_str(), stdout);
  return text;
}

}  // namespace two_hosts
