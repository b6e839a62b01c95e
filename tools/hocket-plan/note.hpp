// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A progress note that a tool shows on a terminal during a long computation, and removes afterwards.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

#include <unistd.h>

namespace plans {

/// Shows the note during its lifetime, if there are enough actions to take noticeable time.
class note {
 public:
  note(const std::string& what, std::size_t actions) : shown_(actions >= 100'000 && ::isatty(STDERR_FILENO) == 1) {
    if (shown_) std::fprintf(stderr, "\r\033[K%s (%zu actions) ...", what.c_str(), actions);
  }
  note(const note&) = delete;
  note& operator=(const note&) = delete;
  ~note() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }

 private:
  const bool shown_;
};

}  // namespace plans
