// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Reads and writes files; the name "-" stands for standard input or output.
#pragma once

#include "usage_error.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <system_error>

namespace plans {

inline std::string read_file(const std::string& name) {
  std::error_code unknown;
  if (std::filesystem::is_directory(name, unknown)) throw usage_error("cannot read '" + name + "': it is a folder");
  std::ifstream file;
  if (name != "-") file.open(name);
  std::istream& in = name == "-" ? std::cin : file;
  if (!in) throw usage_error("cannot read '" + name + "': " + std::strerror(errno));
  return {std::istreambuf_iterator<char>(in), {}};
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
