// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A remote source that reads files of a folder. It appends each read to a log, so that processes can count together what
/// was downloaded, and can be slow or fail.
#pragma once

#include "support/scratch.hpp"

#include <hocket/data/input.hpp>
#include <hocket/data/remote/source.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace cache_test {

using hocket::failure;
using hocket::data::remote_file;

/// The version of a file is the content of its neighbour NAME.version, or "1".
class local_source final : public hocket::data::remote_source {
 public:
  explicit local_source(std::string folder) : folder_(std::move(folder)) {}

  std::chrono::microseconds delay{0};                                               ///< of each read
  std::function<failure(const remote_file&, std::uint64_t)> before_read = nullptr;  ///< may fail

  failure describe(const std::string& name, remote_file& result) override {
    std::error_code error;
    const auto bytes = std::filesystem::file_size(folder_ + '/' + name, error);
    if (error) return hocket::make_failure(hocket::errc::system, "there is no file '" + name + "'");
    const std::string version = hocket_test::read_file(folder_ + '/' + name + ".version");
    result = {name, bytes, version.empty() ? "1" : version, {}};
    return {};
  }

  failure read(const remote_file& file, std::uint64_t offset, std::span<std::byte> into) override {
    if (delay.count() > 0) std::this_thread::sleep_for(delay);
    if (before_read) {
      if (failure cause = before_read(file, offset)) return cause;
    }
    std::ifstream in(folder_ + '/' + file.name, std::ios::binary);
    in.seekg(static_cast<std::streamoff>(offset));
    in.read(reinterpret_cast<char*>(into.data()), static_cast<std::streamsize>(into.size()));
    if (static_cast<std::size_t>(in.gcount()) != into.size())
      return hocket::make_failure(hocket::errc::truncated, "'" + file.name + "' has ended early");
    std::ofstream log(log_path(), std::ios::app);  // one write of less than a page: lines of processes don't mix
    log << file.name + ' ' + std::to_string(offset) + ' ' + std::to_string(into.size()) + '\n' << std::flush;
    return {};
  }

  /// Returns how many bytes of each file all processes have read.
  std::map<std::string, std::uint64_t> bytes_read() const {
    std::map<std::string, std::uint64_t> result;
    std::istringstream log(hocket_test::read_file(log_path()));
    std::string name;
    for (std::uint64_t offset = 0, bytes = 0; log >> name >> offset >> bytes;) result[name] += bytes;
    return result;
  }

  std::string content_of(const std::string& name) const { return hocket_test::read_file(folder_ + '/' + name); }

 private:
  std::string log_path() const { return folder_ + "/reads.log"; }
  std::string folder_;
};

/// Returns bytes that differ between names and positions.
inline std::string content(const std::string& name, std::size_t bytes) {
  std::seed_seq seed(name.begin(), name.end());
  std::mt19937 random(seed);
  std::string result(bytes, '\0');
  for (char& each : result) each = static_cast<char>(random());
  return result;
}

/// A folder of remote files, and one for a cache.
class storage {
 public:
  /// Makes files "0" to "count - 1" of `bytes` bytes.
  storage(std::size_t count, std::size_t bytes) : source(remote_.path()) {
    for (std::size_t i = 0; i < count; ++i) {
      names.push_back(std::to_string(i));
      write(names.back(), content(names.back(), bytes));
    }
  }
  void write(const std::string& name, const std::string& text) const { remote_.write(name, text); }
  std::string folder() const { return local_.path() + "/cache"; }
  std::string scratch() const { return local_.path(); }

 private:
  hocket_test::scratch_directory remote_, local_;

 public:
  local_source source;
  std::vector<std::string> names;
};

inline std::string text_of(const hocket::data::opened_file& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace cache_test
