// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Cores and clock, for programs that are measured on fixed cores.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

#include <sched.h>

namespace compare {

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

inline void yield() { ::sched_yield(); }

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Returns the cores in HOCKET_COMPARE_CORES, such as "0,1", which the driver sets. Launchers change the affinity of
/// their processes, so that it can't be used to find the cores.
inline std::vector<int> given_cores() {
  std::vector<int> cores;
  const char* text = std::getenv("HOCKET_COMPARE_CORES");
  const std::string list = text == nullptr ? "0" : text;
  for (std::size_t begin = 0; begin < list.size(); begin = list.find(',', begin) + 1) {
    cores.push_back(std::atoi(list.c_str() + begin));
    if (list.find(',', begin) == std::string::npos) break;
  }
  return cores;
}

/// Pins this thread, and threads that it starts later, to the core of a rank.
inline void pin(int rank) {
  const std::vector<int> cores = given_cores();
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cores[static_cast<std::size_t>(rank) % cores.size()]), &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

}  // namespace compare
