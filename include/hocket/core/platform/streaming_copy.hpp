// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Copies memory past the caches, for destinations that are larger than a cache.
///
/// An ordinary store first fetches the cache line that it changes, and evicts another one that may be needed soon.
/// Streaming stores write whole lines to memory without fetching them.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/cpu.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>

#include <unistd.h>

HOCKET_BEGIN_NAMESPACE
namespace platform {

/// Returns the size of the last-level cache of this machine in bytes; the maximum if the system does not tell.
inline std::size_t last_level_cache_bytes() noexcept {
  static const std::size_t found = [] {
    std::size_t bytes = 0;
    for (const char* const file :
         {"/sys/devices/system/cpu/cpu0/cache/index2/size", "/sys/devices/system/cpu/cpu0/cache/index3/size"}) {
      std::FILE* const input = std::fopen(file, "re");
      if (input == nullptr) continue;
      unsigned long kibibytes = 0;
      if (std::fscanf(input, "%luK", &kibibytes) == 1) bytes = std::max<std::size_t>(bytes, kibibytes * 1024);
      std::fclose(input);
    }
    return bytes > 0 ? bytes : std::numeric_limits<std::size_t>::max();
  }();
  return found;
}

/// Returns whether a copy of `bytes` bytes, which each of `ranks` ranks makes, does not fit into the last-level cache with
/// its source.
inline bool exceeds_cache(std::size_t bytes, std::size_t ranks) noexcept {
  constexpr std::size_t few = std::size_t{1} << 20;  // below, the cache of one core may hold it
  static const std::size_t cores = static_cast<std::size_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  ranks = std::min(ranks, cores);  // others are on other hosts, or wait for a core
  return bytes >= few && bytes >= last_level_cache_bytes() / (2 * ranks);
}

/// Copies `bytes` bytes, past the caches where the processor can do that. The ranges must not overlap. Other threads may
/// read them after the usual synchronization.
inline void streaming_copy(void* to, const void* from, std::size_t bytes) noexcept {
#if defined(__x86_64__)
  using vector = long long __attribute__((vector_size(16), __may_alias__));
  constexpr std::size_t vectors = cache_line / sizeof(vector);
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  const std::size_t misplaced = reinterpret_cast<std::uintptr_t>(out) % cache_line;
  const std::size_t before = std::min(bytes, (cache_line - misplaced) % cache_line);
  std::memcpy(out, in, before);
  out += before, in += before, bytes -= before;
  for (; bytes >= cache_line; out += cache_line, in += cache_line, bytes -= cache_line) {
    vector line[vectors];
    std::memcpy(line, in, sizeof line);
    for (std::size_t i = 0; i < vectors; ++i) {
      asm volatile("movntdq %1, %0" : "=m"(reinterpret_cast<vector*>(out)[i]) : "x"(line[i]) : "memory");
    }
  }
  std::memcpy(out, in, bytes);
  asm volatile("sfence" ::: "memory");  // streaming stores are not ordered with the stores of flags that follow
#else
  std::memcpy(to, from, bytes);
#endif
}

}  // namespace platform
HOCKET_END_NAMESPACE
