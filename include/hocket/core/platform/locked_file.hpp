// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Files that processes of a host share, with locks that the kernel frees when their holder ends, however it ends.
///
/// The locks are those of `flock`: they belong to the open file, so that they also exclude threads of one process, end
/// with the last descriptor, and can be exclusive for a file that is open for reading. Locks of `fcntl` that belong to an
/// open file need write access for that; those that belong to a process end when it closes any descriptor of the file.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/file_descriptor.hpp>
#include <hocket/core/platform/file_size_limit.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

HOCKET_BEGIN_NAMESPACE
namespace platform {

enum class lock_kind : unsigned char { shared, exclusive };

/// `create` also opens a file that exists. Symbolic links are followed only by `read_linked`.
enum class access : unsigned char { read, read_linked, create };

struct file_status {
  std::uint64_t bytes = 0;
  std::int64_t changed = 0;  ///< when the content has changed or `touch` was called, in nanoseconds since 1970
};

/// A regular file. Functions return 0, or an error number.
class locked_file {
 public:
  int open(const std::string& path, access how) {
    const int flags =
        (how == access::create ? O_RDWR | O_CREAT : O_RDONLY) | (how == access::read_linked ? 0 : O_NOFOLLOW);
    file_.reset(::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666));
    if (!file_) return errno;
    struct stat found {};
    const int error = ::fstat(file_.get(), &found) != 0 ? errno : S_ISREG(found.st_mode) ? 0 : EINVAL;
    if (error != 0) file_.reset();
    return error;
  }

  /// Locks the file, or changes the lock, which may free it for a moment. Returns EWOULDBLOCK if others have a lock that
  /// excludes this one.
  int try_lock(lock_kind kind) {
    const int operation = (kind == lock_kind::shared ? LOCK_SH : LOCK_EX) | LOCK_NB;
    return ::flock(file_.get(), operation) == 0 ? 0 : errno;
  }

  /// Returns whether `path` still is the name of this file.
  bool is_at(const std::string& path) const {
    struct stat own {
    }, found{};
    return ::fstat(file_.get(), &own) == 0 && ::lstat(path.c_str(), &found) == 0 && own.st_ino == found.st_ino &&
           own.st_dev == found.st_dev;
  }

  int status(file_status& result) const {
    struct stat found {};
    if (::fstat(file_.get(), &found) != 0) return errno;
    result.bytes = static_cast<std::uint64_t>(found.st_size);
    result.changed = std::int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec;
    return 0;
  }

  /// Writes all of `bytes` at `offset`.
  int write(std::span<const std::byte> bytes, std::uint64_t offset) {
    if (exceeds_file_size_limit(offset + bytes.size())) return EFBIG;
    while (!bytes.empty()) {
      const ssize_t count = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (count < 0 && errno != EINTR) return errno;
      if (count <= 0) continue;
      bytes = bytes.subspan(static_cast<std::size_t>(count));
      offset += static_cast<std::uint64_t>(count);
    }
    return 0;
  }

  /// Fills `bytes` from `offset` on. Returns ENODATA if the file ends before.
  int read(std::span<std::byte> bytes, std::uint64_t offset) const {
    while (!bytes.empty()) {
      const ssize_t count = ::pread(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (count == 0) return ENODATA;
      if (count < 0 && errno != EINTR) return errno;
      if (count < 0) continue;
      bytes = bytes.subspan(static_cast<std::size_t>(count));
      offset += static_cast<std::uint64_t>(count);
    }
    return 0;
  }

  int resize(std::uint64_t bytes) { return checked(::ftruncate(file_.get(), static_cast<off_t>(bytes))); }
  /// Makes the bytes durable.
  int sync() { return checked(::fdatasync(file_.get())); }
  /// Sets the time of the last change to now.
  int touch() {
    timespec times[2] = {{0, UTIME_OMIT}, {}};
    ::clock_gettime(CLOCK_REALTIME, &times[1]);  // UTIME_NOW advances only with the ticks of the kernel
    return checked(::futimens(file_.get(), times));
  }
  /// Closes the file, which ends the lock.
  void close() noexcept { file_.reset(); }

  explicit operator bool() const noexcept { return static_cast<bool>(file_); }
  int descriptor() const noexcept { return file_.get(); }

 private:
  static int checked(int result) noexcept { return result == 0 ? 0 : errno; }

  file_descriptor file_;
};

/// Gives the file `from` the name `to`, and replaces a file with that name. Returns 0, or an error number.
inline int rename_file(const std::string& from, const std::string& to) noexcept {
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}
inline int remove_file(const std::string& path) noexcept { return ::unlink(path.c_str()) == 0 ? 0 : errno; }

}  // namespace platform
HOCKET_END_NAMESPACE
