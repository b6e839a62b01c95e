// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Formatted text.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <string>

namespace perf {

/// Formats like printf, at most 511 characters.
__attribute__((format(printf, 1, 2))) inline std::string text(const char* format, ...) {
  char line[512];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  return line;
}

}  // namespace perf
