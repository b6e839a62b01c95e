// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Makes writes fail as on a full disk.
#pragma once

#include "support/catch.hpp"

#include <csignal>

#include <sys/resource.h>

namespace observe_test {

/// No file of this process can have more bytes than that.
class file_size_limit {
 public:
  explicit file_size_limit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit now = before_;
    now.rlim_cur = bytes;
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &now) == 0);
  }
  file_size_limit(const file_size_limit&) = delete;
  file_size_limit& operator=(const file_size_limit&) = delete;
  ~file_size_limit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

}  // namespace observe_test
