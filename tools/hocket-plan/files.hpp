// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Reads and writes files; the name "-" stands for standard input or output.
#pragma once

#include "usage_error.hpp"

#include <hocket/core/platform/input_file.hpp>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>

namespace plans {

/// No text form of a schedule is longer; what has no end, such as /dev/zero, is refused there.
inline constexpr std::size_t most_file_bytes = std::size_t{64} << 20;

inline std::string read_standard_input() {
  std::string text, chunk(std::size_t{1} << 16, '\0');
  while (std::cin.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || std::cin.gcount() > 0) {
    text.append(chunk, 0, static_cast<std::size_t>(std::cin.gcount()));
    if (text.size() > most_file_bytes) {
      throw usage_error("cannot read '-': it has more than " + std::to_string(most_file_bytes) + " bytes");
    }
  }
  if (text.empty()) throw usage_error("cannot read '-': it is empty");
  return text;
}

inline std::string read_file(const std::string& name) {
  if (name == "-") return read_standard_input();
  std::string text;
  const std::string problem =
      hocket::platform::read_whole(name, hocket::platform::file_kinds::regular_or_pipe, most_file_bytes, text);
  if (!problem.empty()) throw usage_error("cannot read '" + name + "': " + problem);
  return text;
}

inline void write_file(const std::string& name, const std::string& text) {
  if (name == "-") {
    std::cout << text;
    return;
  }
  std::ofstream file(name);
  file << text;
  file.close();
  if (!file) throw usage_error("cannot write '" + name + "': " + std::strerror(errno));
}

}  // namespace plans
