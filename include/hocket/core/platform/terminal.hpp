// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Whether a stream is a terminal, and how wide it is.
#pragma once

#include <hocket/core/config.hpp>

#include <cstddef>
#include <cstdio>

#include <sys/ioctl.h>
#include <unistd.h>

HOCKET_BEGIN_NAMESPACE
namespace platform {

inline bool is_terminal(std::FILE* stream) noexcept { return ::isatty(::fileno(stream)) == 1; }

/// Returns the number of columns of a terminal; 80 if it is unknown.
inline std::size_t terminal_columns(std::FILE* stream) noexcept {
  winsize size{};
  const bool is_known = ::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : 80;
}

}  // namespace platform
HOCKET_END_NAMESPACE
