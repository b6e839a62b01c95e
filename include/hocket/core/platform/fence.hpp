// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Two fences of unequal cost: the light one, for the side that runs all the time, costs nothing, because the heavy
/// one, for the side that runs once, acts on all threads of the process.
///
/// If one thread stores A, executes the light fence and loads B, and another thread stores B, executes the heavy fence
/// and loads A, then at least one of them sees the other's store. With two equal fences the first side would have to
/// wait, on each pass, until all its stores have left its core.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/cpu.hpp>

#include <atomic>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

HOCKET_BEGIN_NAMESPACE
namespace platform {

inline void light_fence() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

/// Takes microseconds, or milliseconds if the kernel has only the slow form. Acts on the calling thread too.
inline void heavy_fence() noexcept {
  const auto membarrier = [](int command) { return ::syscall(SYS_membarrier, command, 0, 0) == 0; };
  if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  if (membarrier(MEMBARRIER_CMD_GLOBAL)) return;
  // No kernel support. No processor delays a store for this long.
  nap(10'000'000);
}

}  // namespace platform
HOCKET_END_NAMESPACE
