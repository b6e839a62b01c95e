// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Files to which a program appends records while others read them. Each record is written whole, or not at all.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/file_descriptor.hpp>
#include <hocket/core/text.hpp>

#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

HOCKET_BEGIN_NAMESPACE
namespace platform {

/// What `output_file::open` does with a file that exists: it appends to it, or fails with EEXIST.
enum class existing_file : unsigned char { append, refuse };

/// Makes the folder `path` and those that lead to it, unless they exist. Returns 0, or an error number.
inline int make_folders(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    if (::mkdir(path.substr(0, end).c_str(), 0777) != 0) {
      const int error = errno;
      struct stat found {};
      if (::stat(path.substr(0, end).c_str(), &found) != 0) return error;
      if (!S_ISDIR(found.st_mode)) return ENOTDIR;
    }
    if (end == std::string::npos) return 0;
  }
}

/// Returns the part of `path` before its last name; "." if it is a name alone.
inline std::string folder_of(const std::string& path) {
  const std::size_t end = path.rfind('/');
  return end == std::string::npos ? "." : end == 0 ? "/" : path.substr(0, end);
}

/// One writer at a time.
class output_file {
 public:
  /// Opens the file, and creates it if necessary. Returns 0, or an error number.
  int open(std::string path, existing_file how) {
    path_ = std::move(path);
    const int flags = how == existing_file::append ? O_RDWR | O_APPEND : O_WRONLY | O_EXCL;
    file_.reset(::open(path_.c_str(), flags | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666));
    return file_ ? 0 : errno;
  }

  explicit operator bool() const noexcept { return static_cast<bool>(file_); }
  const std::string& path() const noexcept { return path_; }

  /// Returns whether the file has bytes, the last of which is not the end of a line. It must be open to append.
  bool ends_inside_line() const noexcept {
    char last = '\n';
    const off_t size = size_now();
    return size > 0 && ::pread(file_.get(), &last, 1, size - 1) == 1 && last != '\n';
  }

  /// Appends all of `bytes`. After a failure, as on a full disk, the file has none of them.
  failure write(std::span<const std::byte> bytes) {
    const off_t before = size_now();
    if (write_all(file_.get(), bytes)) return {};
    const int error = errno;
    // If that fails, the file ends with part of a record.
    [[maybe_unused]] const int ignored = ::ftruncate(file_.get(), before);
    ::lseek(file_.get(), before, SEEK_SET);
    return system_failure(hocket::detail::concat({"cannot write to '", path_, '\''}), error);
  }
  failure write(std::string_view text) { return write(std::as_bytes(std::span(text))); }

 private:
  off_t size_now() const noexcept {
    struct stat found {};
    return ::fstat(file_.get(), &found) == 0 ? found.st_size : 0;
  }

  std::string path_;
  file_descriptor file_;
};

}  // namespace platform
HOCKET_END_NAMESPACE
