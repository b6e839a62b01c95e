// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A fresh directory in which the ranks of one launch meet. Its launcher removes it; where that was killed, the next
/// launcher does.
///
/// Whether a launcher still lives, the kernel says: each holds a lock on a file in its directory, and so do its ranks,
/// until the last of them has ended. The lock counts on one host alone where directories are shared, so the file says
/// which that is.
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
      raise(platform::system_failure(hocket::detail::concat({"cannot make '", path_, "'"}), errno,
                                     errc::bad_environment));
    }
    // What it says is there once it is locked. Where locks are not to be had, it stays empty.
    lock_.reset(::open((path_ + lock_name).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (lock_ && ::flock(lock_.get(), LOCK_EX) == 0) platform::write_all(lock_.get(), this_boot());
  }
  launch_directory(const launch_directory&) = delete;
  launch_directory& operator=(const launch_directory&) = delete;
  ~launch_directory() { remove(path_); }

  const std::string& path() const noexcept { return path_; }

  /// For those who wait for it there. The first counts: others fail for that.
  void note_failure(int rank) {
    if (std::exchange(noted_, true)) return;
    static_cast<void>(bootstrap::detail::note_end(path_, bootstrap::detail::failed_note, rank));
  }

  /// Removes what launchers of this host have left under `parent` that were killed. Local; any number of processes may
  /// do so at once. What can't be removed stays, silently.
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

  /// As ranks in other working directories find it.
  static std::string absolute(const std::string& path) {
    char current[PATH_MAX] = {};
    if (path.front() == '/' || ::getcwd(current, sizeof current) == nullptr) return path;
    return std::string(current) + '/' + path;
  }

  /// Which boot of which host this is. Containers of one host share it, and its locks.
  static std::vector<std::byte> this_boot() {
    std::vector<std::byte> text;
    platform::read_file("/proc/sys/kernel/random/boot_id", text);
    return text;
  }

  /// With its lock: a store's jobs, with their sessions of plain files.
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
