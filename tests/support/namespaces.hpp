// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Namespaces for tests, which are skipped for users who may not make them, and for nobody else.
#pragma once

#include "support/catch.hpp"

#include <hocket/core/platform/file_descriptor.hpp>

#include <cstdio>
#include <string>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hocket_test {

/// Exit code of a process that may not do what a test needs.
inline constexpr int lacks_rights = 77;

/// Returns whether this user may make namespaces of every kind that the tests use, and mount in them.
inline bool may_make_namespaces() {
  static const bool found = [] {
    const pid_t child = ::fork();
    if (child == 0) {
      const bool may = ::unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWUTS) == 0 &&
                       ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                       ::mount("none", "/dev/shm", "tmpfs", 0, "") == 0 && ::unshare(CLONE_NEWUSER) == 0;
      ::_exit(may ? 0 : 1);
    }
    int status = -1;
    return ::waitpid(child, &status, 0) == child && status == 0;
  }();
  return found;
}

/// Reports that `what` was not tested for want of rights, which is a failure if the user has them.
inline void skip_without_rights(const std::string& what) {
  INFO("not tested: " << what);
  CHECK_FALSE(may_make_namespaces());
  std::printf("skipped: %s, because this user has not the rights\n", what.c_str());
}

/// A file that only kernels with time namespaces have.
inline constexpr const char* time_namespaces = "/proc/self/ns/time";

/// Lets later children of this process be in a time namespace in which the host has started more than a day earlier.
/// Returns false if that is not allowed.
inline bool unshare_time_of_children() {
  if (::unshare(CLONE_NEWTIME) != 0) return false;
  const hocket::platform::file_descriptor offsets(::open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC));
  constexpr char text[] = "boottime 100000 0\n";
  return offsets && ::write(offsets.get(), text, sizeof text - 1) == static_cast<ssize_t>(sizeof text - 1);
}

}  // namespace hocket_test
