// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Whether a process has ended, found with and without the kernel's handle on it.
#include <hocket/bootstrap/launch.hpp>
#include <hocket/bootstrap/process_identity.hpp>

#include "support/catch.hpp"
#include "support/namespaces.hpp"
#include "support/system_call_filter.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using hocket::bootstrap::own_identity;
using hocket::bootstrap::process_identity;
using hocket::bootstrap::process_watch;

/// A child that runs `body`, and its identity.
struct child {
  pid_t pid;
  process_identity identity;

  template <class Body>
  explicit child(Body body) {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    pid = ::fork();
    if (pid == 0) {
      const process_identity own = own_identity();
      if (::write(ends[1], &own, sizeof own) != static_cast<ssize_t>(sizeof own)) ::_exit(1);
      body();
      ::_exit(0);
    }
    if (::read(ends[0], &identity, sizeof identity) != static_cast<ssize_t>(sizeof identity)) std::abort();
    ::close(ends[0]);
    ::close(ends[1]);
  }
  void reap() const { ::waitpid(pid, nullptr, 0); }
};

/// Whether the watch finds within a second that the process has ended.
bool finds_end(process_watch& watch, const process_identity& who) {
  const auto until = std::chrono::steady_clock::now() + 1s;
  while (std::chrono::steady_clock::now() < until) {
    if (watch.ended(who)) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

/// Returns what is wrong; empty if nothing is.
std::string check_watches() {
  std::string wrong;
  const auto expect = [&](bool holds, const char* what) { wrong += holds ? "" : std::string(what) + "; "; };
  const auto sleeps = [] { ::sleep(60); };
  const auto stays = [&](process_watch& watch, const process_identity& who) {
    for (int i = 0; i < 20; ++i) {
      if (watch.ended(who)) return false;
      std::this_thread::sleep_for(1ms);
    }
    return true;
  };

  child killed(sleeps);
  process_watch first, late, after_reaping;
  expect(stays(first, killed.identity), "a process that sleeps has not ended");
  ::kill(killed.pid, SIGSTOP);
  expect(stays(first, killed.identity), "a process that is stopped has not ended");
  ::kill(killed.pid, SIGKILL);
  expect(finds_end(first, killed.identity), "a process that was killed has ended, even if it is a zombie");
  expect(finds_end(late, killed.identity), "a zombie has ended for a watch that begins later");
  killed.reap();
  expect(first.ended(killed.identity), "an end is final");
  expect(finds_end(after_reaping, killed.identity), "a process that is no zombie any more has ended");

  child alive(sleeps);
  process_identity earlier = alive.identity;
  earlier.start_time -= 1;
  process_watch of_earlier;
  expect(finds_end(of_earlier, earlier), "an earlier process with the same number has ended");
  ::kill(alive.pid, SIGKILL);
  alive.reap();

  child without_main([] {
    std::thread([] { ::sleep(60); }).detach();
    ::syscall(SYS_exit, 0);  // ends this thread only
  });
  std::this_thread::sleep_for(20ms);
  process_watch of_threads;
  expect(stays(of_threads, without_main.identity), "a process whose main thread has ended still runs");
  ::kill(without_main.pid, SIGKILL);
  expect(finds_end(of_threads, without_main.identity), "a process whose last thread was killed has ended");
  without_main.reap();
  return wrong;
}

/// Runs the checks in a process of its own, in which pidfd_open fails with `error`; 0: works.
std::string check_with(int error) {
  hocket::launch::process_options options;
  options.capture_output = true;
  return describe_failures(hocket::launch::run_processes(
      1,
      [&](const hocket::bootstrap::world_description&) {
        if (error != 0 && !hocket_test::refuse_system_call(SYS_pidfd_open, error)) {
          std::puts("no filter can be installed");
          return 1;
        }
        const std::string wrong = check_watches();
        std::puts(wrong.c_str());
        return wrong.empty() ? 0 : 1;
      },
      options));
}

TEST_CASE("the end of a process is found, also without the kernel's handle on it") {
  CHECK(check_with(0) == "");
  CHECK(check_with(ENOSYS) == "");  // before Linux 5.3
  CHECK(check_with(EPERM) == "");   // container runtimes
}

/// What makes a watch impossible.
struct difference {
  const char* name;
  void (*make)(process_identity&);
};

constexpr difference differences[] = {
    {"another host", [](process_identity& who) { who.host[0] ^= 1; }},
    {"another PID namespace", [](process_identity& who) { who.pid_namespace ^= 1; }},
    {"another time namespace", [](process_identity& who) { who.time_namespace ^= 1; }},
    {"no known start time", [](process_identity& who) { who.start_time = 0; }},
};

}  // namespace

TEST_CASE("a process is watched only if its number and its start time mean the same to both") {
  const process_identity own = own_identity();
  CHECK(own.can_watch(own));
  for (const difference& each : differences) {
    INFO(each.name);
    process_identity other = own;
    each.make(other);
    CHECK(!own.can_watch(other));
  }
}

TEST_CASE("a process in another time namespace, whose start time seems to be another, is not watched") {
  if (::access(hocket_test::time_namespaces, F_OK) != 0) {
    std::puts("skipped: this kernel has no time namespaces");
    return;
  }
  // Another process, because later children of this one would be in the namespace, too.
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    if (!hocket_test::unshare_time_of_children()) ::_exit(hocket_test::lacks_rights);
    const child other([] { ::sleep(60); });
    const bool is_written = ::write(ends[1], &other.identity, sizeof other.identity) == sizeof other.identity;
    ::pause();  // killed below
    ::_exit(is_written ? 0 : 1);
  }
  ::close(ends[1]);
  process_identity other;
  if (::read(ends[0], &other, sizeof other) == static_cast<ssize_t>(sizeof other)) {
    const process_identity own = own_identity();
    CHECK(own.same_host(other));
    CHECK(own.pid_namespace == other.pid_namespace);
    CHECK(hocket::bootstrap::detail::start_time_of(other.pid) != other.start_time);
    CHECK(!own.can_watch(other));
    CHECK(!other.can_watch(own));
    ::kill(other.pid, SIGKILL);
    ::kill(parent, SIGKILL);
  } else {
    hocket_test::skip_without_rights("a process in another time namespace");
  }
  ::close(ends[0]);
  ::waitpid(parent, nullptr, 0);
}
