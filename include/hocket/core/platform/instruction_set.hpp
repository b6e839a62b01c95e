// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which vector instructions the processor has and the operating system permits, for code that is compiled for several
/// processors and chooses at run time. The functions may be called before constructors of global objects.
#pragma once

#include <hocket/core/config.hpp>

HOCKET_BEGIN_NAMESPACE
namespace platform {

#if defined(__x86_64__)

/// True if there are AVX2 and F16C, which converts halves. Asks the processor for F16C itself, because clang 16 does
/// not know that name; the registers are those of AVX.
inline bool has_avx2() noexcept {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2")) return false;
  unsigned leaf = 1, features = 0;
  asm("cpuid" : "+a"(leaf), "+c"(features) : : "rbx", "rdx");
  return (features >> 29 & 1U) != 0;
}

/// True if there are AVX-512 F, BW, DQ and VL. They came together with Skylake's and Zen 4's cores.
inline bool has_avx512() noexcept {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

#else

inline bool has_avx2() noexcept { return false; }
inline bool has_avx512() noexcept { return false; }

#endif

}  // namespace platform
HOCKET_END_NAMESPACE
