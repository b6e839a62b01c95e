// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Ownership of a file descriptor, and the few calls on descriptors that need care with signals and short writes. All
/// descriptors made here are closed on exec.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>

#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

HOCKET_BEGIN_NAMESPACE

namespace platform {

/// Returns a failure with the text "what: the operating system's message for `error_number`".
inline failure system_failure(std::string what, int error_number, errc code = errc::system) {
  return make_failure(code, std::move(what) + ": " + std::generic_category().message(error_number));
}

/// Owns one file descriptor. Move-only.
class file_descriptor {
 public:
  file_descriptor() noexcept = default;
  explicit file_descriptor(int value) noexcept : value_(value) {}
  file_descriptor(file_descriptor&& other) noexcept : value_(other.release()) {}
  file_descriptor& operator=(file_descriptor&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~file_descriptor() { reset(); }

  int get() const noexcept { return value_; }
  explicit operator bool() const noexcept { return value_ >= 0; }
  int release() noexcept { return std::exchange(value_, -1); }

  void reset(int value = -1) noexcept {
    if (value_ >= 0 && value_ != value) ::close(value_);
    value_ = value;
  }

 private:
  int value_ = -1;
};

struct pipe_ends {
  file_descriptor read;
  file_descriptor write;
};

inline pipe_ends make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) raise(system_failure("cannot make a pipe", errno));
  return {file_descriptor(ends[0]), file_descriptor(ends[1])};
}

inline void set_nonblocking(int descriptor) noexcept {
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

/// Sets whether a child process keeps `descriptor` after exec.
inline void set_inherited(int descriptor, bool inherited) noexcept {
  ::fcntl(descriptor, F_SETFD, inherited ? 0 : FD_CLOEXEC);
}

/// Writes all of `bytes` to a file or a blocking pipe. Returns false, with errno set, if that fails.
inline bool write_all(int descriptor, std::span<const std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace platform

HOCKET_END_NAMESPACE
