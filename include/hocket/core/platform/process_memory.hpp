// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Reads the private memory of another process of this host with one copy, by process_vm_readv.
///
/// The kernel allows that to processes of one user, unless a security module restricts it, so callers try it and have
/// another way. Each call costs about a microsecond and the lookup of each page; on some machines that costs more than
/// a second copy through shared memory, so callers measure it, too.
#pragma once

#include <hocket/core/config.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

HOCKET_BEGIN_NAMESPACE
namespace platform {

enum class process_read {
  done,
  process_ended,
  failed,  ///< the kernel refuses, or part of the memory is not mapped there
};

/// Copies `bytes` bytes at `address` of process `process` to `to`, whose content is unspecified unless that is done.
inline process_read read_process_memory(pid_t process, std::uint64_t address, void* to, std::size_t bytes) noexcept {
  auto* at = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const iovec here{at, bytes};
    const iovec there{reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), bytes};
    const ssize_t done = ::process_vm_readv(process, &here, 1, &there, 1, 0);
    if (done < 0) return errno == ESRCH ? process_read::process_ended : process_read::failed;
    if (done == 0) return process_read::failed;
    at += done;
    address += static_cast<std::uint64_t>(done);
    bytes -= static_cast<std::size_t>(done);
  }
  return process_read::done;
}

/// Returns how much longer such a copy takes than `memcpy`, measured on memory of this process in some 0.2 ms; 0 if the
/// kernel refuses.
inline double relative_cost_of_process_memory() {
  constexpr std::size_t bytes = 256 * 1024;
  constexpr int rounds = 5;
  using clock = std::chrono::steady_clock;
  const auto from = std::make_unique<std::byte[]>(bytes);  // zeroed, so that all pages exist
  const auto to = std::make_unique<std::byte[]>(bytes);
  clock::duration plain = clock::duration::max(), remote = clock::duration::max();
  for (int i = 0; i < rounds; ++i) {
    const auto begin = clock::now();
    std::memcpy(to.get(), from.get(), bytes);
    asm volatile("" ::"r"(to.get()) : "memory");  // the copy must not be optimised away
    const auto middle = clock::now();
    const auto address = reinterpret_cast<std::uintptr_t>(from.get());
    if (read_process_memory(::getpid(), address, to.get(), bytes) != process_read::done) return 0;
    plain = std::min(plain, middle - begin);
    remote = std::min(remote, clock::now() - middle);
  }
  return static_cast<double>(remote.count()) / static_cast<double>(std::max<clock::rep>(1, plain.count()));
}

}  // namespace platform
HOCKET_END_NAMESPACE
