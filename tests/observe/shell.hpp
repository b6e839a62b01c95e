// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Runs other programs, which read what hocket wrote.
#pragma once

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace observe_test {

/// Returns whether the shell command `command` ends with status 0. Its output is dropped.
inline bool succeeds(const std::string& command) {
  return std::system(("{ " + command + "; } >/dev/null 2>&1").c_str()) == 0;
}

/// Returns what the shell command `command` prints, errors included.
inline std::string output_of(const std::string& command) {
  std::string result;
  std::FILE* const opened = ::popen(("{ " + command + "; } 2>&1").c_str(), "r");
  if (opened == nullptr) return "no shell";
  std::array<char, 4096> piece{};
  for (std::size_t count = 1; count > 0;) {
    count = std::fread(piece.data(), 1, piece.size(), opened);
    result.append(piece.data(), count);
  }
  ::pclose(opened);
  return result;
}

}  // namespace observe_test
