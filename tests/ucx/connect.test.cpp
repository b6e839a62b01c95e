// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Start-up and shut-down: worlds of one rank, missing ranks, invalid settings, and resources that must be released.
#include "support/catch.hpp"
#include "support/namespaces.hpp"
#include "ucx/ranks.hpp"

#include <hocket/core/platform/directory.hpp>
#include <hocket/group/shrink.hpp>
#include <hocket/transport/ucx/arrival.hpp>
#include <hocket/transport/ucx/workarounds/tcp_sockets.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace ucx_test;
using hocket::errc;

/// Returns the names in /dev/shm, and the lines of the kernel's list of System V segments.
std::set<std::string> shared_segments() {
  std::set<std::string> found;
  for (const auto& name : hocket::platform::list_directory("/dev/shm")) found.insert(name);
  std::vector<std::byte> content;
  hocket::platform::read_file("/proc/sysvipc/shm", content);
  const std::string text(reinterpret_cast<const char*>(content.data()), content.size());
  std::size_t at = text.find('\n');  // the first line names the columns
  for (; at != std::string::npos && at + 1 < text.size(); at = text.find('\n', at + 1)) {
    found.insert("segment " + text.substr(at + 1, 22));
  }
  return found;
}

/// Returns the segments that did not exist before. Segments of other processes may be removed meanwhile.
std::set<std::string> segments_since(const std::set<std::string>& before) {
  auto added = shared_segments();
  for (const std::string& each : before) added.erase(each);
  return added;
}

std::size_t open_descriptors() { return hocket::platform::list_directory("/proc/self/fd").size(); }

}  // namespace

TEST_CASE("without environment variables, a process is a world of one rank") {
  CHECK(run_worlds(1, shared_memory, [](const world&, findings& found) {
          for (const char* name : {"HOCKET_RANK", "HOCKET_RANKS", "HOCKET_STORE", "HOCKET_LOCAL_RANK",
                                   "HOCKET_LOCAL_RANKS", "HOCKET_STORE_FD"}) {
            ::unsetenv(name);
          }
          auto comm = hocket::ucx::connect();
          found.equal(comm.size(), 1, "size");
          const int seven = 7;
          int sum = 0;
          hocket::all_reduce(comm, std::span(&seven, 1), std::span(&sum, 1));
          found.equal(sum, 7, "sum");
          hocket::barrier(comm);
        }) == "");
}

TEST_CASE("connect reads the environment variables of a launcher") {
  CHECK(run_worlds(2, shared_memory, [](const world& where, findings& found) {
          auto comm = hocket::ucx::connect();
          found.equal(comm.rank(), where.rank, "rank");
          found.equal(comm.size(), 2, "size");
          auto other = hocket::split(comm, hocket::color{0});
          found.expect(other.timeout() == comm.timeout(), "the timeout differs");
        }) == "");
}

TEST_CASE("the timeout of start-up is the default timeout of calls") {
  CHECK(run_worlds(2, shared_memory, [](const world& where, findings& found) {
          hocket::ucx::connect_options options;
          options.timeout = 7s;
          auto comm = hocket::ucx::connect(where, options);
          found.expect(comm.timeout() == 7s, "the timeout differs");
        }) == "");
}

TEST_CASE("connect takes options in braces without a world") {
  CHECK(run_worlds(2, shared_memory, [](const world& where, findings& found) {
          auto comm = hocket::ucx::connect({.timeout = 9s, .staging_bytes = 64 * 1024});
          found.equal(comm.rank(), where.rank, "rank");
          found.expect(comm.timeout() == 9s, "the timeout differs");
          auto again = hocket::ucx::connect({.timeout = 8s});
          found.equal(again.size(), 2, "size");
          found.expect(again.timeout() == 8s, "the timeout differs");
        }) == "");
}

TEST_CASE("connect times out and names a rank that does not start") {
  CHECK(run_worlds(3, shared_memory, [](const world& where, findings& found) {
          if (where.rank == 2) return;
          hocket::ucx::connect_options options;
          options.timeout = 500ms;
          const auto begin = std::chrono::steady_clock::now();
          const auto cause = found.fails(errc::timeout, "connect", [&] { hocket::ucx::connect(where, options); });
          found.expect(std::chrono::steady_clock::now() - begin < 3s, "connect took longer than its timeout");
          found.equal(cause.context.peer, 2, "the missing rank");
          found.expect(cause.message().find("rank 2") != std::string::npos, "the message does not name rank 2");
        }) == "");
}

TEST_CASE("late ranks learn why start-up failed, even if the program of rank 0 catches no error") {
  const auto results = results_of(4, shared_memory, [](world where, findings&) {
    where.ranks = 3;
    if (where.rank == 3) where.rank = 1;  // a second rank 1
    if (where.rank == 2) std::this_thread::sleep_for(100ms);
    // An exception that a thread does not catch ends the process without unwinding, as in `main`.
    std::thread([where] { static_cast<void>(hocket::ucx::connect(where)); }).join();
  });
  for (std::size_t i = 0; i < results.size(); ++i) {
    INFO("process " << i);
    CHECK(results[i].signal == SIGABRT);
    CHECK_THAT(results[i].output, Catch::Contains("two processes claim to be rank 1"));
  }
}

TEST_CASE("connect reports a mismatch on all ranks if their staging memory differs") {
  for (const route& way : {shared_memory, network}) {
    CHECK(run_worlds(3, way, [](const world& where, findings& found) {
            hocket::ucx::connect_options options;
            if (where.rank == 1) options.staging_bytes = 1 << 20;
            const hocket::failure cause = found.fails(errc::mismatch, "connect with other staging memory",
                                                      [&] { static_cast<void>(hocket::ucx::connect(where, options)); });
            const std::string words = cause.message();
            found.expect(words.find("1048576") != std::string::npos && words.find("262144") != std::string::npos &&
                             words.find("staging_bytes") != std::string::npos,
                         words);
            found.expect((cause.context.peer == 1) == (where.rank != 1), "the wrong rank is named: " + words);
          }) == "");
  }
}

TEST_CASE("the difference of two builds names the builds and the relevant macro") {
  const hocket::ucx::arrival own = hocket::ucx::own_arrival(0);
  hocket::ucx::arrival other = own;
  CHECK(hocket::ucx::difference(own, 0, other, 1).empty());
  const std::string digit = std::to_string(HOCKET_ASSERTION_LEVEL);
  std::string build = own.build;
  REQUIRE(build.find("assertions" + digit) != std::string::npos);
  build.replace(build.find("assertions" + digit), 11, "assertions7");
  build.copy(other.build, sizeof other.build - 1);
  const std::string words = hocket::ucx::difference(own, 0, other, 1);
  CHECK(words.find("rank 1 was built as " + build + ", rank 0 was built as " + own.build) == 0);
  CHECK(words.find("HOCKET_ASSERTION_LEVEL") != std::string::npos);
}

TEST_CASE("connect names UCX_TLS if its transports do not reach the peer") {
  for (const char* const transports : {"self", "no_such_transport"}) {
    CHECK(run_worlds(2, {transports, transports, false}, [&](const world& where, findings& found) {
            const auto cause = found.fails(errc::unreachable, "connect", [&] { hocket::ucx::connect(where); });
            const std::string expected = std::string("UCX_TLS='") + transports + "'";
            found.expect(cause.message().find(expected) != std::string::npos, "the message lacks " + expected);
          }) == "");
  }
}

TEST_CASE("programs that a rank starts do not inherit its connections") {
  for (const int ranks : {2, 3, 5}) {
    CHECK(run_ranks(ranks, network, [ranks](communicator& comm, findings& found) {
            meet_all(comm);
            auto other = hocket::shrink(comm);  // with separate connections
            meet_all(other);
            int sockets = 0;
            for (const auto& each : hocket::ucx::own_tcp_sockets()) {
              const bool inherited = (::fcntl(each.descriptor, F_GETFD) & FD_CLOEXEC) == 0;
              found.expect(!inherited,
                           each.is_listening ? "a listening socket is inherited" : "a connection is inherited");
              sockets += each.is_listening ? 0 : 1;
            }
            found.expect(sockets >= ranks - 1, "too few connections were found");
            hocket::barrier(other);
          }) == "");
  }
}

TEST_CASE("a world leaves no shared memory, descriptors or threads behind") {
  const auto before = shared_segments();
  for (const route& way : {shared_memory, posix_memory, network}) {
    INFO(way.name);
    CHECK(run_worlds(2, way, [](const world& where, findings& found) {
            const auto round = [&] {
              auto comm = hocket::ucx::connect(where);
              auto other = hocket::split(comm, hocket::color{0});
              auto buffer = hocket::allocate<std::uint64_t>(comm, 100000);
              std::vector<std::uint64_t> out(buffer.size());
              hocket::all_reduce(comm, buffer.span(), out);
              hocket::all_reduce(other, buffer.span(), out, std::plus<>{}, hocket::with(hocket::ring));
            };
            const std::size_t descriptors = open_descriptors();
            const auto begin = std::chrono::steady_clock::now();
            round();
            found.expect(std::chrono::steady_clock::now() - begin < 2s, "it took too long");
            // The socket that rank 0 inherited is still open; UCX keeps a few descriptors open until the process exits.
            found.expect(open_descriptors() <= descriptors + 4, "descriptors are still open");
            found.equal(hocket::platform::list_directory("/proc/self/task").size(), std::size_t{1}, "threads");
          }) == "");
    CHECK(segments_since(before).empty());
  }
}

TEST_CASE("a killed world leaves no shared memory behind") {
  const auto before = shared_segments();
  const auto text = run_ranks(2, shared_memory, [](communicator& comm, findings&) {
    auto buffer = hocket::allocate<std::uint64_t>(comm, 100000);
    hocket::barrier(comm);
    ::raise(SIGKILL);
  });
  CHECK(text.find("signal 9") != std::string::npos);
  CHECK(segments_since(before).empty());
}

/// Mounts a separate /dev/shm of this size ("40m") for this process. If that is not permitted, prints "left out" and
/// returns false.
bool has_own_shared_memory(const char* size) {
  if (::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
      ::mount("tmpfs", "/dev/shm", "tmpfs", 0, (std::string("size=") + size).c_str()) == 0) {
    return true;
  }
  std::printf("left out\n");
  return false;
}

void check_with_own_shared_memory(const std::vector<hocket::launch::process_result>& results) {
  CHECK(hocket::launch::describe_failures(results) == "");
  if (results[0].output.find("left out") != std::string::npos)
    hocket_test::skip_without_rights("a separate /dev/shm for each rank");
}

TEST_CASE("connect reports a /dev/shm that is too small") {
  check_with_own_shared_memory(results_of(2, posix_memory, [](const world& where, findings& found) {
    if (!has_own_shared_memory("1m")) return;
#if defined(__SANITIZE_ADDRESS__)
    __lsan_disable();  // UCX 1.13 forgets 600 bytes of a worker that it can't make
#endif
    hocket::failure cause;
    try {
      hocket::ucx::connect(where);
    } catch (const hocket::error& problem) {
      cause = problem.cause();
    }
#if defined(__SANITIZE_ADDRESS__)
    __lsan_enable();
#endif
    // Since 1.16, UCX does not use shared memory if there is too little of it, and then finds no transport.
    found.expect(cause.code == errc::out_of_memory || cause.code == errc::unreachable, "unexpected error, or none");
    found.expect(cause.message().find("/dev/shm has ") != std::string::npos, "the message: " + cause.message());
  }));
}

TEST_CASE("connect fails on all ranks and names the rank whose /dev/shm is too small") {
  check_with_own_shared_memory(results_of(3, posix_memory, [](const world& where, findings& found) {
    if (!has_own_shared_memory(where.rank == 1 ? "1m" : "40m")) return;
#if defined(__SANITIZE_ADDRESS__)
    __lsan_disable();  // UCX 1.13 forgets 600 bytes of a worker that it can't make
#endif
    hocket::failure cause;
    try {
      hocket::ucx::connect(where);
    } catch (const hocket::error& problem) {
      cause = problem.cause();
    }
#if defined(__SANITIZE_ADDRESS__)
    __lsan_enable();
#endif
    // Since 1.16, UCX does not use shared memory if there is too little of it, and then no rank finds a transport.
    found.expect(cause.code == errc::out_of_memory || cause.code == errc::unreachable, "unexpected error, or none");
    found.expect(where.rank == 1 || cause.context.peer == 1 || cause.code == errc::unreachable,
                 "the wrong rank: " + cause.message());
    found.expect(cause.message().find("/dev/shm has ") != std::string::npos, "the message: " + cause.message());
  }));
}

/// Since 1.16, UCX continues without shared memory if there is too little of it: it needs more to start, and no shrink
/// fails.
const bool needs_shared_memory = !hocket::ucx::at_least(16);
const char* const enough_for_one_world = needs_shared_memory ? "8m" : "40m";

/// Returns the cause of a failure of `shrink`, which must be a lack of memory.
hocket::failure failure_of_shrink(communicator& comm, findings& found) {
  hocket::failure cause;
  try {
    hocket::shrink(comm);
  } catch (const hocket::error& problem) {
    cause = problem.cause();
  }
  found.expect(cause.code == errc::out_of_memory || !(cause || needs_shared_memory),
               "the cause is not a lack of memory: " + cause.message());
  return cause;
}

// The old world releases its memory only after the new one is made.
TEST_CASE("shrink fails on all ranks within 5 s if /dev/shm is too small for a second world") {
  check_with_own_shared_memory(results_of(2, posix_memory, [](const world& where, findings& found) {
    if (!has_own_shared_memory(enough_for_one_world)) return;
    auto comm = hocket::ucx::connect(where);
    comm.revoke("to be shrunk");
    const auto begin = std::chrono::steady_clock::now();
    const hocket::failure cause = failure_of_shrink(comm, found);
    found.expect(!cause || cause.message().find("can't make the communicator of the survivors: ") != std::string::npos,
                 "the message: " + cause.message());
    found.expect(std::chrono::steady_clock::now() - begin < 5s, "it took too long");
  }));
}

TEST_CASE("shrink names the rank whose /dev/shm is too small by its number in the old world") {
  check_with_own_shared_memory(results_of(3, posix_memory, [](const world& where, findings& found) {
    if (!has_own_shared_memory(where.rank == 2 ? enough_for_one_world : "60m")) return;
    auto comm = hocket::ucx::connect(where);
    if (where.rank == 0) return;  // so that the others would have other numbers in the new world
    const hocket::failure cause = failure_of_shrink(comm, found);
    found.expect(!cause || cause.context.peer == (where.rank == 2 ? -1 : 2), "the rank: " + cause.message());
    found.expect(cause.message().find("rank 1 reports") == std::string::npos, "the text: " + cause.message());
  }));
}

TEST_CASE("allocate is limited by the memory of the machine, not by /dev/shm") {
  check_with_own_shared_memory(results_of(2, posix_memory, [](const world& where, findings& found) {
    if (!has_own_shared_memory("40m")) return;
    auto comm = hocket::ucx::connect(where);
    auto buffer = hocket::allocate<char>(comm, 64 << 20);
    std::fill(buffer.begin(), buffer.end(), 'x');
    hocket::barrier(comm);
    found.fails(errc::out_of_memory, "allocate", [&] { hocket::allocate<char>(comm, std::size_t{1} << 45); });
  }));
}

TEST_CASE("a rank may exit after its first call, even if other ranks have not connected to it yet") {
  struct first_call {
    const route& way;
    const char* name;
    void (*make)(communicator&, findings&);
  };
  // In a barrier of five, each rank receives from other ranks than those to which it sends. A short sum uses shared
  // memory without a message; over TCP, about one in 500 runs prints a warning (docs/when-it-fails.md).
  const auto barrier = [](communicator& comm, findings&) { hocket::barrier(comm); };
  const auto sum = [](communicator& comm, findings& found) { check_sum(comm, 1, found); };
  const first_call calls[] = {
      {shared_memory, "barrier", barrier}, {network, "barrier", barrier}, {shared_memory, "sum", sum}};
  const int rounds = std::getenv("HOCKET_SOAK_MOMENTS") == nullptr ? 12 : 40;
  for (const first_call& call : calls) {
    for (int round = 0; round < rounds; ++round) {
      const auto results = results_of(5, call.way, [&](const world& where, findings& found) {
        auto comm = hocket::ucx::connect(where);
        call.make(comm, found);
      });
      INFO(call.name << " over " << call.way.name << ", round " << round);
      for (const auto& each : results) {
        CHECK(each.succeeded());
        CHECK(each.output == "");  // UCX prints a warning about memory of a rank that has exited
      }
    }
  }
}
