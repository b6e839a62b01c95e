// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A temporary directory for one test, which is removed at its end.
#pragma once

#include "support/catch.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <stdlib.h>

namespace hocket_test {

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class scratch_directory {
 public:
  scratch_directory() : path_((std::filesystem::temp_directory_path() / "hocket-test-XXXXXX").string()) {
    REQUIRE(::mkdtemp(path_.data()) != nullptr);
  }
  scratch_directory(const scratch_directory&) = delete;
  scratch_directory& operator=(const scratch_directory&) = delete;
  ~scratch_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const noexcept { return path_; }

  /// Returns the sorted names of its entries.
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& each : std::filesystem::directory_iterator(path_))
      result.push_back(each.path().filename().string());
    std::sort(result.begin(), result.end());
    return result;
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + '/' + name, std::ios::binary) << text;
  }

 private:
  std::string path_;
};

}  // namespace hocket_test
