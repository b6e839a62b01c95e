// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Ranks that make calls until an observer has seen enough. They and the observer wait for each other by files, because
/// other programs may have started the ranks.
#pragma once

#include "ucx/ranks.hpp"

#include <hocket/core/platform/directory.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

namespace ucx_test {

/// A directory with one file for each fact.
class observed_start {
 public:
  static constexpr const char* variable = "UCX_TEST_START";  ///< names the directory to programs that are started

  /// Makes a new directory, which the destructor removes.
  observed_start() : folder_("/tmp/hocket-test-" + hocket::platform::random_name()), made_(true) {
    ::mkdir(folder_.c_str(), 0700);
  }
  explicit observed_start(const char* folder) : folder_(folder == nullptr ? "" : folder) {}
  observed_start(const observed_start&) = delete;
  observed_start& operator=(const observed_start&) = delete;
  ~observed_start() {
    std::error_code ignored;
    if (made_) std::filesystem::remove_all(folder_, ignored);
  }

  const std::string& folder() const noexcept { return folder_; }

  void set(const std::string& fact, const std::string& value = "true") const {
    const std::string name = folder_ + '/' + fact;
    std::ofstream(name + ".part") << value;
    std::filesystem::rename(name + ".part", name);
  }
  /// Returns the value of a fact; empty if it is not set yet.
  std::string read(const std::string& fact) const {
    std::ostringstream text;
    const std::ifstream file(folder_ + '/' + fact);
    if (file) text << file.rdbuf();
    return text.str();
  }
  std::string await(const std::string& fact) const {
    const auto last = std::chrono::steady_clock::now() + 20s;
    for (;;) {
      std::string value = read(fact);
      if (!value.empty()) return value;
      if (std::chrono::steady_clock::now() > last) throw std::runtime_error("nobody has set " + fact);
      std::this_thread::sleep_for(1ms);
    }
  }

  /// Acts as `rank`: the last one waits for "go", then each connects, and makes calls until rank 0 sees "stop".
  template <class Connect>
  void play(int rank, int ranks, std::uint16_t port, Connect connect) const {
    set("rank" + std::to_string(rank), std::to_string(::getpid()) + ' ' + std::to_string(port));
    if (rank == ranks - 1) await("go");
    communicator comm = connect();
    set("connected" + std::to_string(rank));
    findings found("rank " + std::to_string(rank));
    for (int stop = 0; stop == 0;) {
      check_sum(comm, 3, found);
      check_sum(comm, 30'000, found);
      if (rank == 0) stop = read("stop").empty() ? 0 : 1;
      hocket::broadcast(comm, std::span(&stop, 1), hocket::root{0});
    }
    if (found.any()) throw std::runtime_error("wrong results");
  }

 private:
  std::string folder_;
  bool made_ = false;
};

}  // namespace ucx_test
