// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Ranks of one host that share less than usual: other namespaces, users and limits, as in containers, and without some
/// system calls. They connect by another way, and no port is open beyond the loopback interface.
#include "support/catch.hpp"
#include "support/system_call_filter.hpp"
#include "ucx/ranks.hpp"

#include <hocket/transport/ucx/workarounds/tcp_sockets.hpp>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace ucx_test;

constexpr route by_default{"what start-up finds", nullptr, true, nullptr, nullptr};

/// A mount namespace with an empty /dev/shm, mounted with `flags`; `options` as for mount.
bool with_own_shm(unsigned long flags, const char* options) {
  return ::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("none", "/dev/shm", "tmpfs", flags, options) == 0;
}

/// A mount namespace whose /dev has the usual devices, but no directory for shared memory.
bool without_shm() {
  const auto add = [](const char* name, unsigned minor) {
    return ::mknod(name, S_IFCHR | 0666, makedev(1, minor)) == 0;
  };
  return ::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("none", "/dev", "tmpfs", 0, "") == 0 && add("/dev/null", 3) && add("/dev/zero", 5) &&
         add("/dev/urandom", 9);
}

/// Makes a PID namespace, in which this process continues as a copy. The process before waits for the copy, and ends as
/// it does.
bool in_own_pid_namespace(bool mounts_proc) {
  if (::unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) return false;
  std::fflush(nullptr);
  if (const pid_t copy = ::fork(); copy != 0) {
    int status = 0;
    while (copy > 0 && ::waitpid(copy, &status, 0) < 0 && errno == EINTR) {}
    ::_exit(copy > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 125);
  }
  return !mounts_proc || (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                          ::mount("proc", "/proc", "proc", 0, nullptr) == 0);
}

/// What one rank does before it connects. Returns false if it has not the rights for that.
struct condition {
  const char* name;
  bool (*prepare)(int rank);
  bool shares_memory;  ///< whether ranks still do
};

constexpr condition conditions[] = {
    {"nothing is special", [](int) { return true; }, true},
    {"user namespaces", [](int) { return ::unshare(CLONE_NEWUSER) == 0; }, false},
    {"one rank in another user namespace", [](int rank) { return rank != 1 || ::unshare(CLONE_NEWUSER) == 0; }, false},
    {"IPC namespaces", [](int) { return ::unshare(CLONE_NEWIPC) == 0; }, false},
    {"UTS namespaces", [](int) { return ::unshare(CLONE_NEWUTS) == 0; }, true},
    {"processes that are not dumpable", [](int) { return ::prctl(PR_SET_DUMPABLE, 0) == 0 && ::setuid(65534) == 0; },
     false},
    {"other users", [](int rank) { return ::setuid(static_cast<uid_t>(60001 + rank)) == 0; }, false},
    {"an empty /dev/shm of each rank", [](int) { return with_own_shm(0, ""); }, true},
    {"a read-only /dev/shm", [](int) { return with_own_shm(MS_RDONLY, ""); }, false},
    {"a /dev/shm of 64 KiB", [](int) { return with_own_shm(0, "size=64k"); }, false},
    {"no /dev/shm", [](int) { return without_shm(); }, false},
    {"PID namespaces", [](int) { return in_own_pid_namespace(true); }, false},
    {"PID namespaces with the /proc of the host", [](int) { return in_own_pid_namespace(false); }, false},
    {"no pidfd_open", [](int) { return hocket_test::refuse_system_call(SYS_pidfd_open); }, true},
    {"no process_vm_readv", [](int) { return hocket_test::refuse_system_call(SYS_process_vm_readv, EPERM); }, true},
    {"no memfd_create", [](int) { return hocket_test::refuse_system_call(SYS_memfd_create); }, true},
    {"no membarrier", [](int) { return hocket_test::refuse_system_call(SYS_membarrier, EPERM); }, true},
    {"no futex between processes", [](int) { return hocket_test::refuse_futex_between_processes(); }, true},
};

constexpr int no_rights = 77;

bool is_on_loopback(const hocket::ucx::tcp_address& address) {
  return address.family == AF_INET && address.host[0] == 127;
}

void use_all(communicator& comm, findings& found) {
  for (const std::size_t count : {1U, 1000U, 100'000U}) check_sum(comm, count, found);
  const int next = (comm.rank() + 1) % comm.size(), previous = (comm.rank() + comm.size() - 1) % comm.size();
  const std::vector<int> mine(50'000, comm.rank());
  std::vector<int> theirs(mine.size());
  hocket::send_recv(comm, mine, hocket::peer{next}, theirs, hocket::peer{previous});
  found.equal(theirs.back(), previous, "message of the previous rank");
}

}  // namespace

TEST_CASE("ranks of one host connect whatever they share, and open ports on the loopback interface at most") {
  for (const condition& each : conditions) {
    INFO(each.name);
    const auto results = hocket::launch::run_processes(
        3,
        [&](const world& where) {
          findings found("rank " + std::to_string(where.rank) + " with " + each.name);
          use(by_default);
          if (!each.prepare(where.rank)) return no_rights;
          try {
            auto comm = hocket::ucx::connect(where, {.timeout = 20s});
            use_all(comm, found);
            found.equal(has_windows(comm), each.shares_memory, "whether ranks share memory");
            for (const auto& socket : hocket::ucx::own_tcp_sockets()) {
              if (!socket.is_listening) continue;
              found.expect(!each.shares_memory, "a port is open although memory is shared");
              found.expect(is_on_loopback(socket.local_address), "a port is open beyond the loopback interface");
            }
            hocket::barrier(comm);
          } catch (const std::exception& cause) {
            found.expect(false, cause.what());
          }
          return found.any() ? 1 : 0;
        },
        {.capture_output = true, .timeout = 60s, .directory = {}});
    if (results[0].exit_code == no_rights || results[1].exit_code == no_rights) {
      std::printf("skipped: ranks with %s, because this user has not the rights\n", each.name);
      continue;
    }
    CHECK(describe_failures(results) == "");
  }
}
