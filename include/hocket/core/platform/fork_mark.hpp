// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Detects whether this process is a copy made by `fork`.
///
/// Such a copy shares connections and memory with its parent, and would communicate in the parent's name. Asking for
/// the process number in each call is too slow, because it is a system call. Reading a page that the kernel clears in
/// copies is a single load.
#pragma once

#include <hocket/core/config.hpp>

#include <cstddef>

#include <sys/mman.h>

HOCKET_BEGIN_NAMESPACE
namespace platform {

/// A mark that is set in the process that created it, and cleared in copies.
class fork_mark {
 public:
  /// If the kernel does not support this (before Linux 4.14), copies are not detected.
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

  /// True if this process is a copy of the process that created this mark.
  bool in_forked_child() const noexcept { return here_ != nullptr && *here_ == 0; }

 private:
  static constexpr std::size_t bytes = 1;  // a page

  volatile unsigned char* here_ = nullptr;
};

}  // namespace platform
HOCKET_END_NAMESPACE
