// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Tells a process from a copy of it.
///
/// A copy that `fork` has made shares connections and memory with the process that it was made of, and would speak in its
/// name. To ask for the process number with each call is too slow, as that is a system call; a page that the kernel clears in
/// copies is a load.
#pragma once

#include <hocket/core/config.hpp>

#include <cstddef>

#include <sys/mman.h>

HOCKET_BEGIN_NAMESPACE
namespace platform {

/// Of the process that has made it.
class fork_mark {
 public:
  /// Where the kernel can't do that (before Linux 4.14), copies go unnoticed.
  fork_mark() noexcept {
    void* const page = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return;
    here_ = static_cast<volatile unsigned char*>(page);
    *here_ = 1;
    ::madvise(page, bytes, MADV_WIPEONFORK);
  }
  fork_mark(const fork_mark&) = delete;
  fork_mark& operator=(const fork_mark&) = delete;
  ~fork_mark() {
    if (here_ != nullptr) ::munmap(const_cast<unsigned char*>(here_), bytes);
  }

  /// Whether this process is a copy of the one that made this.
  bool in_forked_child() const noexcept { return here_ != nullptr && *here_ == 0; }

 private:
  static constexpr std::size_t bytes = 1;  // a page

  volatile unsigned char* here_ = nullptr;
};

}  // namespace platform
HOCKET_END_NAMESPACE
