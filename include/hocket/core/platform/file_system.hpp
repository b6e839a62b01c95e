// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The system calls by which files are written so that they survive a crash: each is one virtual function, so that a
/// test can end the process before it, let it fail, or record what a loss of power would leave.
///
/// What the storage has to provide: `sync` of a file makes its bytes durable, `sync` of a folder its entries; renaming
/// is atomic; what one process has written and closed, another one reads. Local file systems do, and those of clusters
/// that follow POSIX.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/file_descriptor.hpp>
#include <hocket/core/platform/file_size_limit.hpp>
#include <hocket/core/platform/process.hpp>
#include <hocket/core/text.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

HOCKET_BEGIN_NAMESPACE
namespace platform {

/// What a file is opened for.
enum class file_use : unsigned char {
  read,
  read_directly,    ///< past the page cache, if the file system can: see `direct_access_bytes`
  create,           ///< to write; the file must not exist
  create_directly,  ///< the same, past the page cache if the file system can
  folder,           ///< to sync it
  folder_itself     ///< the same, but fails with ENOTDIR if the path is a link to a folder
};

/// Alignment of addresses, offsets and sizes for direct access.
inline constexpr std::size_t direct_access_bytes = 4096;

/// Functions return 0, or an error number. May be used by several threads.
class file_system {
 public:
  file_system() = default;
  file_system(const file_system&) = delete;
  file_system& operator=(const file_system&) = delete;
  virtual ~file_system() = default;

  virtual int make_folder(const std::string& path) { return checked(::mkdir(path.c_str(), 0777)); }

  virtual int open(const std::string& path, file_use how, file_descriptor& result) {
    int descriptor = ::open(path.c_str(), flags_of(how), 0666);
    const bool is_direct = how == file_use::read_directly || how == file_use::create_directly;
    // A file system without direct access refuses after it has created the file.
    if (descriptor < 0 && errno == EINVAL && is_direct) {
      descriptor = ::open(path.c_str(), flags_of(how) & ~(O_DIRECT | O_EXCL), 0666);
    }
    result.reset(descriptor);
    return descriptor < 0 ? errno : 0;
  }

  /// Writes some of `bytes`, or none if a signal arrives, at `offset`. A number of bytes that is no multiple of 4096
  /// goes through the page cache, also in a file that was opened for direct access, and so does all that follows.
  virtual int write(int file, std::span<const std::byte> bytes, std::uint64_t offset, std::size_t& written) {
    written = 0;
    if (exceeds_file_size_limit(offset + bytes.size())) return EFBIG;
    if (bytes.size() % direct_access_bytes != 0) ::fcntl(file, F_SETFL, ::fcntl(file, F_GETFL) & ~O_DIRECT);
    return counted(::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset)), written);
  }
  /// Reads some bytes at `offset`; none at the end of the file.
  virtual int read(int file, std::span<std::byte> bytes, std::uint64_t offset, std::size_t& count) {
    return counted(::pread(file, bytes.data(), bytes.size(), static_cast<off_t>(offset)), count);
  }
  virtual int size_of(int file, std::uint64_t& bytes) {
    struct stat found {};
    const int error = checked(::fstat(file, &found));
    bytes = error == 0 ? static_cast<std::uint64_t>(found.st_size) : 0;
    return error;
  }
  /// Makes the bytes of a file, or the entries of a folder, durable.
  virtual int sync(int file) { return checked(::fsync(file)); }

  /// Renames a file; fails with EEXIST if `to` exists. Where the file system can't do that at once, links `to` and
  /// removes `from`: a crash may leave both.
  virtual int rename_to_new(const std::string& from, const std::string& to) {
    const int error = checked(::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE));
    if (error != EINVAL && error != ENOSYS) return error;
    const int link_error = checked(::link(from.c_str(), to.c_str()));
    return link_error != 0 ? link_error : remove(from);
  }
  /// Renames a file, and replaces `to`.
  virtual int rename(const std::string& from, const std::string& to) {
    return checked(::rename(from.c_str(), to.c_str()));
  }
  virtual int remove(const std::string& path) { return checked(::unlink(path.c_str())); }
  virtual int remove_folder(const std::string& path) { return checked(::rmdir(path.c_str())); }

  /// Sets `names` to those of all entries of a folder, in any order.
  virtual int list(const std::string& path, std::vector<std::string>& names) {
    names.clear();
    DIR* const opened = ::opendir(path.c_str());
    if (opened == nullptr) return errno;
    int error = 0;
    for (;;) {
      errno = 0;
      const dirent* const entry = ::readdir(opened);
      if (entry == nullptr) {
        error = errno;
        break;
      }
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    ::closedir(opened);
    return error;
  }

  /// Opens a file, or makes it, and locks it until the descriptor is closed, which the kernel does when the process
  /// ends. Returns EWOULDBLOCK if another descriptor has the lock; then, and if the file system has no locks (ENOLCK,
  /// ENOSYS, EOPNOTSUPP), the file is open. Network file systems need write access to lock.
  virtual int lock(const std::string& path, file_descriptor& result) {
    result.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666));
    return result.get() < 0 ? errno : checked(::flock(result.get(), LOCK_EX | LOCK_NB));
  }

 private:
  static int checked(int result) noexcept { return result == 0 ? 0 : errno; }
  static int counted(ssize_t result, std::size_t& count) noexcept {
    count = result > 0 ? static_cast<std::size_t>(result) : 0;
    return result >= 0 || errno == EINTR ? 0 : errno;
  }
  static int flags_of(file_use how) noexcept {
    switch (how) {
      case file_use::read: return O_RDONLY | O_CLOEXEC | O_NONBLOCK;
      case file_use::read_directly: return O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_DIRECT;
      case file_use::create: return O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
      case file_use::create_directly: return O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_DIRECT;
      case file_use::folder: return O_RDONLY | O_DIRECTORY | O_CLOEXEC;
      case file_use::folder_itself: return O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    }
    return O_RDONLY;
  }
};

/// Replaces the file `path` at once: a reader sees all of its old or of its new bytes. A crash may leave the old ones.
/// Returns an error number; then the file is as it was.
inline int replace_file(file_system& files, const std::string& path, std::span<const std::byte> bytes) {
  // No other thread of this host has its number, so that two that replace one file do not remove each other's.
  const std::string fresh = hocket::detail::concat({path, ".", thread_number(), ".new"});
  files.remove(fresh);  // of a thread that was killed
  int error = exceeds_file_size_limit(bytes.size()) ? EFBIG : 0;
  file_descriptor opened;
  if (error == 0) error = files.open(fresh, file_use::create, opened);
  if (error == 0 && !write_all(opened.get(), bytes)) error = errno;
  if (error == 0) error = files.rename(fresh, path);
  if (error != 0) files.remove(fresh);
  return error;
}

}  // namespace platform
HOCKET_END_NAMESPACE
