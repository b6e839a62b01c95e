// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Removes shared memory of UCX that processes which were killed have left behind.
///
/// Version: seen with UCX 1.13.
/// Symptom: UCX gives its segments names for a moment, and a process that is killed in that moment leaves a file in
///   /dev/shm, with the memory that it holds.
/// Test: ucx/leftover_segments.test.cpp, and fault/kill.test.cpp, which leaves such files.
///
/// Whether a file is in use is asked of the kernel: a read lease is granted only where nobody has it open for writing,
/// and who maps a segment of UCX has. That also counts processes that are not seen from here, as those of other
/// containers which share /dev/shm; a look into /proc would miss them. Where there are no leases, nothing is removed.
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

/// Whether nobody has `file`, which is open for reading, open for writing. `file` keeps the lease.
inline bool is_unused(int file) noexcept {
  ::fcntl(file, F_SETSIG,
          SIGURG);  // if somebody opens it just now: a signal that is ignored, instead of one that kills
  return ::fcntl(file, F_SETLEASE, F_RDLCK) == 0;
}

inline bool is_leftover(int file, std::chrono::seconds least_age) noexcept {
  struct stat found {};
  if (::fstat(file, &found) != 0 || !S_ISREG(found.st_mode) || found.st_uid != ::geteuid()) return false;
  return ::time(nullptr) - found.st_mtime >= least_age.count() && is_unused(file);
}

}  // namespace detail

/// Removes segments of UCX in `directory` that belong to this user, are a minute old, and are used by nobody. Local;
/// any number of processes may do so at once. What can't be removed stays, silently.
inline void remove_leftover_segments(const std::string& directory) {
  constexpr std::string_view prefix = "ucx_shm_posix_";
  constexpr auto least_age = std::chrono::minutes(1);  // younger ones may be about to be used
  for (const std::string& name : platform::list_directory(directory)) {
    if (name.compare(0, prefix.size(), prefix) != 0) continue;
    const std::string path = directory + '/' + name;
    const platform::file_descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file && detail::is_leftover(file.get(), least_age)) ::unlink(path.c_str());
  }
}

/// The same where UCX puts its segments.
inline void remove_leftover_segments() {
  const char* const directory = std::getenv("UCX_POSIX_DIR");
  remove_leftover_segments(directory != nullptr && *directory != '\0' ? directory : "/dev/shm");
}

}  // namespace ucx
HOCKET_END_NAMESPACE
