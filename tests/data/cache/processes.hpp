// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Processes of a test, which begin at the same time, report what is wrong, and can be killed.
#pragma once

#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <hocket/core/platform/file_descriptor.hpp>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <exception>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace cache_test {

/// Copies of this process. Make no threads before.
class processes {
 public:
  /// Starts `count` processes that call `body(i)`, which returns what is wrong, once `begin` is called.
  processes(int count, const std::function<std::string(int)>& body) : begin_(hocket::platform::make_pipe()) {
    for (int i = 0; i < count; ++i) {
      const pid_t child = ::fork();
      REQUIRE(child >= 0);
      if (child == 0) run(i, body);
      children_.push_back(child);
    }
    begin_.read.reset();
  }
  processes(const processes&) = delete;
  processes& operator=(const processes&) = delete;
  ~processes() {
    for (std::size_t i = 0; i < children_.size(); ++i) kill(i);
    end();
  }

  void begin() { begin_.write.reset(); }

  void kill(std::size_t which) {
    if (children_[which] > 0) ::kill(children_[which], SIGKILL);
  }

  /// Returns how many processes a kill has ended.
  int killed() const noexcept { return killed_; }

  /// Waits for all processes. Returns what is wrong, also if one of them has failed otherwise; killed ones are right.
  std::string end() {
    begin();
    std::string result;
    for (std::size_t i = 0; i < children_.size(); ++i) {
      int status = 0;
      if (children_[i] <= 0) continue;
      while (::waitpid(children_[i], &status, 0) < 0 && errno == EINTR) continue;
      children_[i] = 0;
      const std::string path = problem_of(static_cast<int>(i)), problem = hocket_test::read_file(path);
      const bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
      killed_ += is_killed ? 1 : 0;
      const bool is_well = is_killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
      if (!problem.empty() || !is_well) result += "process " + std::to_string(i) + ": " + problem + '\n';
    }
    return result;
  }

 private:
  std::string problem_of(int i) const { return scratch_.path() + '/' + std::to_string(i); }

  [[noreturn]] void run(int i, const std::function<std::string(int)>& body) {
    begin_.write.reset();
    std::ofstream report(problem_of(i));  // now, because `body` may refuse calls of the system
    char ignored = 0;
    while (::read(begin_.read.get(), &ignored, 1) < 0 && errno == EINTR) continue;
    std::string problem;
    try {
      problem = body(i);
    } catch (const std::exception& cause) {
      problem = cause.what();
    }
    report << problem << std::flush;
    ::_exit(0);
  }

  hocket_test::scratch_directory scratch_;
  hocket::platform::pipe_ends begin_;
  std::vector<pid_t> children_;
  int killed_ = 0;
};

}  // namespace cache_test
