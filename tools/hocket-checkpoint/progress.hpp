// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A line on a terminal that shows how much of a long work is done, and disappears at its end.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include <unistd.h>

namespace checkpoint_tool {

class progress {
 public:
  progress(std::string what, std::uint64_t all) : what_(std::move(what)), all_(std::max<std::uint64_t>(1, all)) {}
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;
  ~progress() {
    if (is_shown_) std::fputs("\r\033[K", stderr);
  }

  void show(std::uint64_t done) {
    const auto now = std::chrono::steady_clock::now();
    if (!is_terminal_ || now < next_) return;
    next_ = now + std::chrono::milliseconds(100);
    is_shown_ = true;
    std::fprintf(stderr, "\r%s: %3.0f %%", what_.c_str(), 100 * static_cast<double>(done) / static_cast<double>(all_));
    std::fflush(stderr);
  }

 private:
  const std::string what_;
  const std::uint64_t all_;
  const bool is_terminal_ = ::isatty(2) == 1;
  bool is_shown_ = false;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
};

}  // namespace checkpoint_tool
