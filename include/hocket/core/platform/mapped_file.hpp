// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Files that are mapped into memory for reading, because they are larger than memory and are read in any order. A
/// mapped file must not become shorter: access to a page that is gone ends the process by SIGBUS.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/file_descriptor.hpp>

#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

HOCKET_BEGIN_NAMESPACE
namespace platform {

/// A regular file in memory, read-only. Movable.
class mapped_file {
 public:
  mapped_file() noexcept = default;

  /// Maps the file `path`; `problem` explains a failure.
  mapped_file(const std::string& path, std::string& problem) {
    const file_descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (file) map(file.get(), problem);
    else problem = std::generic_category().message(errno);
  }
  /// Maps an open file, whose descriptor need not remain open.
  mapped_file(int descriptor, std::string& problem) { map(descriptor, problem); }

  mapped_file(mapped_file&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  mapped_file& operator=(mapped_file&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~mapped_file() {
    if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  }

  /// The bytes of the file, at an address that is a multiple of the page size. Valid until the destructor.
  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

 private:
  void map(int descriptor, std::string& problem) {
    struct stat found {};
    if (::fstat(descriptor, &found) != 0) {
      problem = std::generic_category().message(errno);
    } else if (!S_ISREG(found.st_mode)) {
      problem = "it is not a regular file";
    } else if (found.st_size > 0) {  // an empty file can't be mapped, and need not be
      size_ = static_cast<std::size_t>(found.st_size);
      void* const begin = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor, 0);
      if (begin != MAP_FAILED) data_ = static_cast<const std::byte*>(begin);
      else problem = std::generic_category().message(errno);
      if (begin == MAP_FAILED) size_ = 0;
    }
  }

  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace platform
HOCKET_END_NAMESPACE
