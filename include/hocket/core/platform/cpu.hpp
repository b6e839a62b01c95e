// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Processor and scheduler functions for code that waits.
#pragma once

#include <hocket/core/config.hpp>

#include <cstddef>

#include <sched.h>
#include <time.h>

HOCKET_BEGIN_NAMESPACE
namespace platform {

/// The unit in which cores exchange memory: data written by different ranks must not share a cache line.
inline constexpr std::size_t cache_line = 64;

/// Informs the core that this is a spin loop.
inline void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

/// Prefetches the cache line at `place`, which will be read soon. Does nothing if it is not accessible.
inline void prefetch(const void* place) noexcept { __builtin_prefetch(place); }

/// Prefetches the cache line at `place`, which will be written soon.
inline void prefetch_to_write(const void* place) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(place)));  // builtins only emit it for some processors
#else
  __builtin_prefetch(place, 1);
#endif
}

/// Moves the cache line at `place`, which another core will read soon, towards that core. Processors without such an
/// instruction (x86-64: CLDEMOTE) do nothing.
inline void hand_over(const void* place) noexcept {
#if defined(__x86_64__)
  asm volatile(".byte 0x0f, 0x1c, 0x00" : : "a"(place) : "memory");
#else
  static_cast<void>(place);
#endif
}

/// Yields this core to another thread.
inline void yield() noexcept { ::sched_yield(); }

/// Sleeps, for waits that have become long.
inline void nap(long nanoseconds) noexcept {
  const timespec duration{0, nanoseconds};
  ::nanosleep(&duration, nullptr);
}

/// Returns the number of cores that this process may run on; at least 1.
inline int usable_cores() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  const int count = CPU_COUNT(&set);
  return count > 0 ? count : 1;
}

/// While it exists, the calling thread runs only on one of its cores: the `number`-th, modulo how many there are.
class on_one_core {
 public:
  explicit on_one_core(int number) noexcept {
    if (::sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    const int cores = CPU_COUNT(&before_);
    int skipped = cores > 0 ? number % cores : 0;
    std::size_t core = 0;
    while (core < CPU_SETSIZE && (!CPU_ISSET(core, &before_) || skipped-- > 0)) ++core;
    if (core == CPU_SETSIZE) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    has_moved_ = ::sched_setaffinity(0, sizeof one, &one) == 0;
  }
  on_one_core(const on_one_core&) = delete;
  on_one_core& operator=(const on_one_core&) = delete;
  ~on_one_core() {
    if (has_moved_) ::sched_setaffinity(0, sizeof before_, &before_);
  }

 private:
  cpu_set_t before_{};
  bool has_moved_ = false;
};

}  // namespace platform
HOCKET_END_NAMESPACE
