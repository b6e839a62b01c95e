// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Functions for small files in directories that several processes share, and random names for such files.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/file_descriptor.hpp>
#include <hocket/core/platform/file_size_limit.hpp>
#include <hocket/core/platform/input_file.hpp>
#include <hocket/core/text.hpp>

#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dirent.h>
#include <sys/random.h>
#include <sys/stat.h>

HOCKET_BEGIN_NAMESPACE

namespace platform {

/// Returns bits from the kernel's generator, which can't be predicted.
template <typename Bits>
Bits random_bits() {
  Bits bits{};
  auto* const begin = reinterpret_cast<unsigned char*>(&bits);
  std::size_t filled = 0;
  while (filled < sizeof bits) {
    const ssize_t count = ::getrandom(begin + filled, sizeof bits - filled, 0);
    if (count < 0 && errno != EINTR) raise(system_failure("cannot get random bits", errno));
    if (count > 0) filled += static_cast<std::size_t>(count);
  }
  return bits;
}

/// Returns 128 random bits as 32 hexadecimal digits: impossible to guess, and unique in practice.
inline std::string random_name() {
  const auto bits = random_bits<std::array<unsigned char, 16>>();
  std::string text;
  for (const unsigned char byte : bits) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

/// Sets `names` to the names of all entries of a directory, temporary files of `write_file` included. Returns 0, or an
/// error number.
inline int list_directory(const std::string& path, std::vector<std::string>& names) {
  struct close_directory {
    void operator()(DIR* open) const noexcept { ::closedir(open); }
  };
  names.clear();
  const std::unique_ptr<DIR, close_directory> open(::opendir(path.c_str()));
  if (!open) return errno;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(open.get());
    if (entry == nullptr) return errno;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
}

/// Returns the names of all entries of a directory. Ignores errors.
inline std::vector<std::string> list_directory(const std::string& path) {
  std::vector<std::string> names;
  list_directory(path, names);
  return names;
}

/// Reads a file into `content`. Returns false, with undefined `content`, if it does not exist, is no regular file or can't
/// be read.
inline bool read_file(const std::string& path, std::vector<std::byte>& content) {
  content.clear();
  input_file file(path, file_kinds::regular);
  std::array<std::byte, 16384> chunk;
  while (file) {
    const std::size_t count = file.read(chunk);
    content.insert(content.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(count));
    if (count < chunk.size()) return file.problem().empty();
  }
  return false;
}

/// Writes `directory`/`name` by renaming a temporary file, so that no reader sees a part. Replaces an existing file.
inline failure write_file(const std::string& directory, const std::string& name, std::span<const std::byte> content) {
  const std::string temporary = hocket::detail::concat({directory, "/.new-", random_name()});
  const std::string path = directory + '/' + name;
  if (failure cause = exceeds_file_size_limit(content.size())) {
    cause.reason = hocket::detail::concat({"cannot write '", path, "': ", cause.reason});
    return cause;
  }
  file_descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const bool written = file && write_all(file.get(), content);
  file.reset();
  if (written && ::rename(temporary.c_str(), path.c_str()) == 0) return {};
  failure cause = system_failure(hocket::detail::concat({"cannot write '", path, "'"}), errno);
  ::unlink(temporary.c_str());
  return cause;
}

/// Creates directory `path` if it does not exist. The parent must exist. Ignores errors: later uses of `path` fail.
inline void make_directory(const std::string& path) noexcept { ::mkdir(path.c_str(), 0777); }

/// Removes a directory without subdirectories. Ignores errors. Several processes may remove it at the same time.
inline void remove_flat_directory(const std::string& path) {
  for (const std::string& name : list_directory(path)) ::unlink((path + '/' + name).c_str());
  ::rmdir(path.c_str());
}

}  // namespace platform

HOCKET_END_NAMESPACE
