// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The numbers of this process and thread, and the name of its host, for people who read the files that the process wrote.
#pragma once

#include <hocket/core/config.hpp>

#include <string>

#include <sys/syscall.h>
#include <unistd.h>

HOCKET_BEGIN_NAMESPACE
namespace platform {

inline int process_number() noexcept { return static_cast<int>(::getpid()); }

/// Returns the number of this thread, which no other thread on this host has.
inline int thread_number() noexcept { return static_cast<int>(::syscall(SYS_gettid)); }

/// Returns the name of this host; empty if it is unknown.
inline std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

}  // namespace platform
HOCKET_END_NAMESPACE
