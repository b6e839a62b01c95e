// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Files that a user names and a program reads. A file is opened once, and what it is and how long it is are asked of
/// the open file: a name may belong to another file a moment later. Files are read, not mapped, because a mapped file
/// that shrinks ends the process by SIGBUS.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/file_descriptor.hpp>
#include <hocket/core/text.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

HOCKET_BEGIN_NAMESPACE
namespace platform {

/// What can be read. A pipe yields its content only once, so a file that several processes read can't be a pipe.
enum class file_kinds : unsigned char { regular, regular_or_pipe };

/// A file that is read from its begin to its end.
class input_file {
 public:
  /// Opens the file `path`; `problem` explains a failure. Waits for the writer of a pipe if pipes are accepted.
  input_file(const std::string& path, file_kinds accepted)
      : file_(::open(path.c_str(),
                     O_RDONLY | O_CLOEXEC | O_NOCTTY | (accepted == file_kinds::regular ? O_NONBLOCK : 0))) {
    struct stat found {};
    if (!file_ || ::fstat(file_.get(), &found) != 0) {
      problem_ = std::generic_category().message(errno);
    } else if (S_ISREG(found.st_mode)) {
      size_ = static_cast<std::size_t>(found.st_size);
      modified_ = std::chrono::seconds(found.st_mtim.tv_sec) + std::chrono::nanoseconds(found.st_mtim.tv_nsec);
    } else if (!S_ISFIFO(found.st_mode) || accepted == file_kinds::regular) {
      problem_ = refusal(found.st_mode, accepted);
    }
    if (!problem_.empty()) file_.reset();
  }

  explicit operator bool() const noexcept { return static_cast<bool>(file_); }
  /// Why the file could not be opened or read; empty if it could.
  const std::string& problem() const noexcept { return problem_; }
  /// Number of bytes of a regular file when it was opened, which may change; 0 for a pipe, and for files in /proc.
  std::size_t size() const noexcept { return size_; }
  /// When a regular file was changed last, by the time at which it was opened: since the epoch of `std::chrono::system_clock`.
  std::chrono::nanoseconds modified() const noexcept { return modified_; }

  /// Reads the next bytes into `to`, and returns how many: fewer than fit only at the end of the file, or if it can't be
  /// read, with a `problem`.
  std::size_t read(std::span<std::byte> to) {
    std::size_t filled = 0;
    while (filled < to.size()) {
      const ssize_t count = ::read(file_.get(), to.data() + filled, to.size() - filled);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) problem_ = std::generic_category().message(errno);
      if (count <= 0) break;
      filled += static_cast<std::size_t>(count);
    }
    return filled;
  }

 private:
  static std::string refusal(mode_t kind, file_kinds accepted) {
    const char* const what = S_ISDIR(kind)                    ? "it is a folder"
                             : S_ISFIFO(kind)                 ? "it is a pipe"
                             : S_ISCHR(kind) || S_ISBLK(kind) ? "it is a device"
                                                              : "it is a special file";
    return hocket::detail::concat(
        {what, accepted == file_kinds::regular ? ", not a regular file" : ", neither a regular file nor a pipe"});
  }

  file_descriptor file_;
  std::string problem_;
  std::size_t size_ = 0;
  std::chrono::nanoseconds modified_{};
};

/// Reads a whole file into `content`, which is undefined after an error. Returns what is wrong, such as "it is empty" or
/// "it has more than 100 bytes", or an empty string.
inline std::string read_whole(input_file& file, std::size_t most, std::string& content) {
  constexpr std::size_t step = std::size_t{64} << 10;
  const std::string too_long = hocket::detail::concat({"it has more than ", most, " bytes"});
  content.clear();
  if (file.size() > most) return too_long;
  // One byte more than expected, so that the last read finds the end.
  for (std::size_t wanted = std::max(file.size() + 1, step); file; wanted = step) {
    const std::size_t before = content.size(), room = std::min(wanted, most - before + 1);
    content.resize(before + room);
    const std::size_t count = file.read(std::as_writable_bytes(std::span(content).subspan(before)));
    content.resize(before + count);
    if (!file.problem().empty()) break;
    if (content.size() > most) return too_long;
    if (count < room) return content.empty() ? "it is empty" : "";
  }
  return file.problem();
}

/// Opens and reads a whole file.
inline std::string read_whole(const std::string& path, file_kinds accepted, std::size_t most, std::string& content) {
  input_file file(path, accepted);
  return read_whole(file, most, content);
}

}  // namespace platform
HOCKET_END_NAMESPACE
