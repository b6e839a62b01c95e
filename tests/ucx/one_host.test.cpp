// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Ranks of one host that share less than usual: other namespaces, users and limits, as in containers, and without some
/// system calls. They connect by another way, open no port beyond the loopback interface, and name a killed rank.
#include "support/catch.hpp"
#include "support/namespaces.hpp"
#include "support/system_call_filter.hpp"
#include "ucx/ranks.hpp"

#include <hocket/transport/ucx/workarounds/tcp_sockets.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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

/// Continues as a copy of this process, which waits for the copy and ends with its status, as a shell reports it.
bool continue_as_copy() {
  std::fflush(nullptr);
  const pid_t copy = ::fork();
  if (copy == 0) return true;
  int status = 125 << 8;
  while (copy > 0 && ::waitpid(copy, &status, 0) < 0 && errno == EINTR) {}
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/// Continues in a PID namespace, but not as its first process, which could not kill itself.
bool in_own_pid_namespace(bool mounts_proc) {
  if (::unshare(CLONE_NEWPID | CLONE_NEWNS) != 0 || !continue_as_copy() || !continue_as_copy()) return false;
  return !mounts_proc || (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                          ::mount("proc", "/proc", "proc", 0, nullptr) == 0);
}

bool refuses_memfd() { return hocket_test::refuse_system_call(SYS_memfd_create, EPERM); }

bool in_own_time_namespace() { return hocket_test::unshare_time_of_children() && continue_as_copy(); }

bool limits_files_to(rlim_t bytes) {
  const rlimit limit{bytes, bytes};
  return ::setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

/// What one rank does before it connects. Returns false if it has not the rights for that.
struct condition {
  const char* name;
  bool (*prepare)(int rank);
  bool shares_memory;           ///< whether ranks still do
  const char* needs = nullptr;  ///< a file that kernels have which offer that; null: all do
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
    {"no memfd_create and a read-only /dev/shm", [](int) { return with_own_shm(MS_RDONLY, "") && refuses_memfd(); },
     false},
    {"no memfd_create and no /dev/shm", [](int) { return without_shm() && refuses_memfd(); }, false},
    {"no memfd_create and no room in /dev/shm", [](int) { return with_own_shm(0, "size=64k") && refuses_memfd(); },
     false},
    {"no memfd_create and room in /dev/shm for the windows, but not to measure",
     [](int) { return with_own_shm(0, "size=14600k") && refuses_memfd(); }, true},
    {"no memfd_create and room in /dev/shm for UCX alone",
     [](int) { return with_own_shm(0, "size=8m") && refuses_memfd(); }, false},
    {"one rank without memfd_create and without /dev/shm",
     [](int rank) { return rank != 1 || (without_shm() && refuses_memfd()); }, false},
    {"no files of more than 64 KiB", [](int) { return limits_files_to(64 << 10); }, false},
    {"no files of more than 5 MiB on one rank", [](int rank) { return rank != 1 || limits_files_to(5 << 20); }, false},
    {"one rank in another time namespace", [](int rank) { return rank != 1 || in_own_time_namespace(); }, false,
     hocket_test::time_namespaces},
    {"no membarrier", [](int) { return hocket_test::refuse_system_call(SYS_membarrier, EPERM); }, true},
    {"no futex between processes", [](int) { return hocket_test::refuse_futex_between_processes(); }, true},
};

constexpr int rank_count = 3;

using clock = std::chrono::steady_clock;

/// Points in time, in memory that all ranks share.
struct kill_times {
  std::atomic<clock::rep> killed{0};
  std::atomic<clock::rep> noticed[rank_count] = {};
};

class shared_kill_times {
 public:
  shared_kill_times()
      : memory_(::mmap(nullptr, sizeof(kill_times), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    REQUIRE(memory_ != MAP_FAILED);
    new (memory_) kill_times;
  }
  shared_kill_times(const shared_kill_times&) = delete;
  shared_kill_times& operator=(const shared_kill_times&) = delete;
  ~shared_kill_times() { ::munmap(memory_, sizeof(kill_times)); }

  kill_times& operator*() const noexcept { return *static_cast<kill_times*>(memory_); }

  /// Returns the longest time in which a rank other than `victim` has noticed the kill.
  std::chrono::duration<double> longest(int victim) const {
    clock::duration result{0};
    for (int rank = 0; rank < rank_count; ++rank) {
      const kill_times& found = **this;
      if (rank != victim) result = std::max(result, clock::duration(found.noticed[rank] - found.killed));
    }
    return result;
  }

 private:
  void* const memory_;
};

bool is_on_loopback(const hocket::ucx::tcp_address& address) {
  return address.host.family == AF_INET && address.host.bytes[0] == 127;
}

void use_all(communicator& comm, findings& found) {
  for (const std::size_t count : {1U, 1000U, 100'000U}) check_sum(comm, count, found);
  const int next = (comm.rank() + 1) % comm.size(), previous = (comm.rank() + comm.size() - 1) % comm.size();
  const std::vector<int> mine(50'000, comm.rank());
  std::vector<int> theirs(mine.size());
  hocket::send_recv(comm, mine, hocket::peer{next}, theirs, hocket::peer{previous});
  found.equal(theirs.back(), previous, "message of the previous rank");
}

void check_own_ports(const condition& special, findings& found) {
  for (const auto& socket : hocket::ucx::own_tcp_sockets()) {
    if (!socket.is_listening) continue;
    found.expect(!special.shares_memory, "a port is open although memory is shared");
    found.expect(is_on_loopback(socket.local_address), "a port is open beyond the loopback interface");
  }
}

/// Kills the victim while the others wait for it in a call; these must name it.
void lose(int victim, communicator& comm, findings& found, kill_times& when) {
  hocket::barrier(comm);
  if (comm.rank() == victim) {
    std::this_thread::sleep_for(20ms);  // until the others sleep
    when.killed = clock::now().time_since_epoch().count();
    ::kill(::getpid(), SIGKILL);
  }
  const auto cause =
      found.fails(hocket::errc::peer_lost, "a barrier without the killed rank", [&] { hocket::barrier(comm); });
  when.noticed[comm.rank()] = clock::now().time_since_epoch().count();
  found.equal(cause.context.peer, victim, "rank named by the error");
}

/// Connects, uses the communicator, and loses `victim`. Returns the status of the process.
int run_condition(const world& where, const condition& special, int victim, kill_times& when) {
  findings found("rank " + std::to_string(where.rank) + " with " + special.name);
  use(by_default);
  if (!special.prepare(where.rank)) return hocket_test::lacks_rights;
  try {
    auto comm = hocket::ucx::connect(where, {.timeout = 20s});
    use_all(comm, found);
    found.equal(has_windows(comm), special.shares_memory, "whether ranks share memory");
    check_own_ports(special, found);
    lose(victim, comm, found, when);
  } catch (const std::exception& cause) {
    found.expect(false, cause.what());
  }
  return found.any() ? 1 : 0;
}

/// Returns whether the ranks had the rights for the condition.
bool check_condition(const condition& special, int victim) {
  INFO(special.name << ", and rank " << victim << " is killed");
  const shared_kill_times when;
  auto results = hocket::launch::run_processes(
      rank_count, [&](const world& where) { return run_condition(where, special, victim, *when); },
      {.capture_output = true, .timeout = 60s, .directory = {}});
  const bool has_rights = std::none_of(results.begin(), results.end(),
                                       [](const auto& each) { return each.exit_code == hocket_test::lacks_rights; });
  if (!has_rights) {
    hocket_test::skip_without_rights(std::string("ranks with ") + special.name);
    return false;
  }
  auto& lost = results[static_cast<std::size_t>(victim)];
  CHECK((lost.signal == SIGKILL || lost.exit_code == 128 + SIGKILL));
  lost = {};
  lost.exit_code = 0;
  CHECK(describe_failures(results) == "");
  const auto longest = when.longest(victim);
  CHECK(longest < 1s);
  std::printf("%s: rank %d named after %.1f ms\n", special.name, victim, 1000 * longest.count());
  return true;
}

/// A program that asks for memory on a host that offers little, and what its error must state, if it gets one.
struct request {
  const char* name;
  bool (*prepare)();
  void (*ask)(const world&);
  hocket::errc code;
  const char* stated;  ///< null: no error
  int ranks = 2;
};

/// Room for UCX and the window of one communicator of two ranks.
bool with_room_for_one_window() { return with_own_shm(0, "size=20m") && refuses_memfd(); }
bool without_memory_to_share() { return with_own_shm(MS_RDONLY, "") && refuses_memfd(); }

void allocate_after_start(const world& where, std::size_t bytes) {
  auto comm = hocket::ucx::connect(where);
  auto buffer = hocket::allocate<char>(comm, bytes);
  std::fill(buffer.begin(), buffer.end(), 'x');
  hocket::all_gather(comm, buffer.span().first(1), buffer.span().last(static_cast<std::size_t>(comm.size())));
}

constexpr request requests[] = {
    {"a window that does not fit into /dev/shm", with_room_for_one_window,
     [](const world& where) { hocket::ucx::connect(where, {.staging_bytes = 4 << 20}); },
     hocket::errc::invalid_argument, "staging_bytes=4194304 is too much for this host"},
    {"a window larger than the machine", [] { return true; },
     [](const world& where) { hocket::ucx::connect(where, {.staging_bytes = std::size_t{1} << 40}); },
     hocket::errc::out_of_memory, "bytes of shared memory: the machine has less"},
    {"a window larger than the machine, without memory to share", without_memory_to_share,
     [](const world& where) { hocket::ucx::connect(where, {.staging_bytes = std::size_t{1} << 40}); },
     hocket::errc::out_of_memory, "bytes of shared memory: the machine has less"},
    {"a buffer that does not fit into /dev/shm", with_room_for_one_window,
     [](const world& where) { allocate_after_start(where, 16 << 20); }, hocket::errc::out_of_memory,
     "bytes of shared memory: memfd_create: Operation not permitted; /dev/shm: No space left on device"},
    {"a buffer larger than a file may be", [] { return limits_files_to(12 << 20); },
     [](const world& where) { allocate_after_start(where, 16 << 20); }, hocket::errc::out_of_memory,
     "the limit of the size of files is 12582912 bytes: raise it (ulimit -f)"},
    {"a second communicator for which /dev/shm has no room", with_room_for_one_window,
     [](const world& where) {
       auto comm = hocket::ucx::connect(where);
       hocket::split(comm, hocket::color{0});
     },
     hocket::errc::out_of_memory, "/dev/shm: No space left on device"},
    {"a buffer, without memory to share",
     without_memory_to_share,
     [](const world& where) { allocate_after_start(where, 16 << 20); },
     {},
     nullptr},
    {"a buffer on one rank alone, without memory to share",
     without_memory_to_share,
     [](const world& where) { allocate_after_start(where, 16 << 20); },
     {},
     nullptr,
     1},
    {"a buffer larger than the machine, without memory to share", without_memory_to_share,
     [](const world& where) { allocate_after_start(where, std::size_t{1} << 45); }, hocket::errc::out_of_memory,
     "bytes of shared memory: the machine has less"},
};

int run_request(const world& where, const request& wanted) {
  findings found("rank " + std::to_string(where.rank) + " that wants " + wanted.name);
  use(by_default);
  if (!wanted.prepare()) return hocket_test::lacks_rights;
  try {
    wanted.ask(where);
    found.expect(wanted.stated == nullptr, "it has got it");
  } catch (const hocket::error& cause) {
    found.expect(wanted.stated != nullptr && cause.code() == wanted.code &&
                     std::string(cause.what()).find(wanted.stated) != std::string::npos,
                 cause.what());
  }
  return found.any() ? 1 : 0;
}

}  // namespace

TEST_CASE("a program that asks for more memory than a host can share learns why, and gets what need not be shared") {
  for (const request& each : requests) {
    INFO(each.name);
    const auto results =
        hocket::launch::run_processes(each.ranks, [&](const world& where) { return run_request(where, each); },
                                      {.capture_output = true, .timeout = 60s, .directory = {}});
    if (results[0].exit_code == hocket_test::lacks_rights) {
      hocket_test::skip_without_rights(each.name);
    } else {
      CHECK(describe_failures(results) == "");
    }
  }
}

TEST_CASE("ranks of one host connect whatever they share, open no port to others, and name a killed rank within 1 s") {
  const int kills = std::getenv("HOCKET_SOAK_MOMENTS") == nullptr ? 1 : rank_count;
  int victim = 0;  // another one for each condition
  for (const condition& each : conditions) {
    if (each.needs != nullptr && ::access(each.needs, F_OK) != 0) {
      std::printf("skipped: ranks with %s, because this kernel has no %s\n", each.name, each.needs);
      continue;
    }
    bool has_rights = true;
    for (int i = 0; i < kills && has_rights; ++i) has_rights = check_condition(each, victim++ % rank_count);
  }
}
