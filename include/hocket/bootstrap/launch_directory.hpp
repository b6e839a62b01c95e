// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A new directory in which the ranks of one launch meet. Its launcher removes it; if that launcher was killed, the
/// next launcher does.
///
/// A file lock indicates whether a launcher is still alive: each launcher locks a file in its directory, and its ranks
/// inherit the lock until the last of them has ended. On a shared file system the lock is valid on one host only, so
/// the file names that host.
#pragma once

#include <hocket/bootstrap/process_notes.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/directory.hpp>
#include <hocket/core/platform/file_descriptor.hpp>
#include <hocket/core/text.hpp>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

HOCKET_BEGIN_NAMESPACE

namespace launch::detail {

class launch_directory {
 public:
  /// `parent`/hocket-launch-`token`.
  launch_directory(const std::string& parent, const std::string& token)
      : path_(absolute(parent) + '/' + std::string(prefix) + token) {
    remove_leftovers(parent);
    if (::mkdir(path_.c_str(), 0700) != 0) {
      raise(platform::system_failure(hocket::detail::concat({"cannot create '", path_, "'"}), errno,
                                     errc::bad_environment));
    }
    // The content is written once the file is locked. If locks are not available, the file stays empty.
    lock_.reset(::open((path_ + lock_name).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (lock_ && ::flock(lock_.get(), LOCK_EX) == 0) platform::write_all(lock_.get(), this_boot());
  }
  launch_directory(const launch_directory&) = delete;
  launch_directory& operator=(const launch_directory&) = delete;
  ~launch_directory() { remove(path_); }

  const std::string& path() const noexcept { return path_; }

  /// Writes a marker file for the ranks that wait. Only the first failure counts: others follow from it.
  void note_failure(int rank) {
    if (std::exchange(noted_, true)) return;
    static_cast<void>(bootstrap::detail::note_end(path_, bootstrap::detail::failed_note, rank));
  }

  /// Removes the directories under `parent` of launchers of this host that were killed. Local; any number of processes
  /// may call this at the same time. Silently skips what can't be removed.
  static void remove_leftovers(const std::string& parent) {
    for (const std::string& name : platform::list_directory(parent)) {
      if (name.compare(0, prefix.size(), prefix) != 0) continue;
      const std::string path = parent + '/' + name;
      struct stat found {};
      if (::lstat(path.c_str(), &found) != 0 || !S_ISDIR(found.st_mode) || found.st_uid != ::geteuid()) continue;
      const platform::file_descriptor lock(::open((path + lock_name).c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
      if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;
      std::vector<std::byte> boot;
      if (platform::read_file(path + lock_name, boot) && !boot.empty() && boot == this_boot()) remove(path);
    }
  }

 private:
  static constexpr std::string_view prefix = "hocket-launch-";
  static constexpr const char* lock_name = "/.lock";

  /// Returns an absolute path, because ranks may run in other working directories.
  static std::string absolute(const std::string& path) {
    char current[PATH_MAX] = {};
    if (path.front() == '/' || ::getcwd(current, sizeof current) == nullptr) return path;
    return std::string(current) + '/' + path;
  }

  /// Identifies this boot of this host. Containers of one host share the id, and the locks.
  static std::vector<std::byte> this_boot() {
    std::vector<std::byte> text;
    platform::read_file("/proc/sys/kernel/random/boot_id", text);
    return text;
  }

  /// Removes a launch directory: its jobs with their sessions of plain files, the marker file and the lock file.
  static void remove(const std::string& path) {
    for (const std::string& job : platform::list_directory(path)) {
      const std::string base = path + '/' + job;
      for (const std::string& session : platform::list_directory(base)) {
        platform::remove_flat_directory(base + '/' + session);
      }
      ::rmdir(base.c_str());
    }
    ::unlink((path + '/' + bootstrap::detail::failed_note).c_str());
    ::unlink((path + lock_name).c_str());
    ::rmdir(path.c_str());
  }

  const std::string path_;
  platform::file_descriptor lock_;
  bool noted_ = false;
};

}  // namespace launch::detail

HOCKET_END_NAMESPACE
