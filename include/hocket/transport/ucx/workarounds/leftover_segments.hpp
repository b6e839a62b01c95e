// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Removes shared memory of UCX that killed processes have left behind.
///
/// Version: seen with UCX 1.13.
/// Symptom: UCX gives its segments names for a short time. A process that is killed in that time leaves a file in
///   /dev/shm, which continues to occupy memory.
/// Test: ucx/leftover_segments.test.cpp, and fault/kill.test.cpp, which leaves such files.
///
/// The kernel knows whether a file is in use: it grants a read lease only if no process has the file open for writing,
/// and every process that maps a segment of UCX does. That includes processes that are invisible here, such as those of
/// other containers that share /dev/shm. Without leases, nothing is removed.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/directory.hpp>
#include <hocket/core/platform/file_descriptor.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {
namespace detail {

/// Returns whether no process has `file` open for writing. `file` must be open for reading, and retains the lease.
inline bool is_unused(int file) noexcept {
  ::fcntl(file, F_SETSIG, SIGURG);  // sent if a process opens the file now; the default signal would kill this process
  return ::fcntl(file, F_SETLEASE, F_RDLCK) == 0;
}

inline bool is_leftover(int file, std::chrono::seconds least_age) noexcept {
  struct stat found {};
  if (::fstat(file, &found) != 0 || !S_ISREG(found.st_mode) || found.st_uid != ::geteuid()) return false;
  return ::time(nullptr) - found.st_mtime >= least_age.count() && is_unused(file);
}

}  // namespace detail

/// Removes segments of UCX in `directory` that belong to this user, are at least a minute old, and are not in use.
/// Local; any number of processes may call it at the same time. Silently skips files that can't be removed.
inline void remove_leftover_segments(const std::string& directory) {
  constexpr std::string_view prefix = "ucx_shm_posix_";
  constexpr auto least_age = std::chrono::minutes(1);  // younger ones may not be in use yet
  for (const std::string& name : platform::list_directory(directory)) {
    if (name.compare(0, prefix.size(), prefix) != 0) continue;
    const std::string path = directory + '/' + name;
    const platform::file_descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file && detail::is_leftover(file.get(), least_age)) ::unlink(path.c_str());
  }
}

/// Removes leftover segments from the directory in which UCX creates them.
inline void remove_leftover_segments() {
  const char* const directory = std::getenv("UCX_POSIX_DIR");
  remove_leftover_segments(directory != nullptr && *directory != '\0' ? directory : "/dev/shm");
}

}  // namespace ucx
HOCKET_END_NAMESPACE
