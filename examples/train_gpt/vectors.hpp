// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Loops with the vector instructions of the machine, in a program compiled for any processor.
///
/// Results have the same bits at all levels of instructions if a loop has the same sums in the same order, because the
/// build forbids the compiler to fuse products with sums. So ranks need not agree on a level.
#pragma once

#include <hocket/kernel/host/instruction_level.hpp>

namespace gpt {

/// A vector of floats in a register.
template <int Lanes>
struct vector {
  typedef float type __attribute__((vector_size(Lanes * sizeof(float))));  // NOLINT: `using` loses the attribute
  /// The same in an array of floats, at any address.
  struct __attribute__((packed, may_alias)) elements {
    type vector;
  };
};

// `flatten` inlines the loops, which are then compiled for the instructions of the function around them.
#if defined(__x86_64__)
template <class Loops>
__attribute__((flatten, target("avx2"))) void with_avx2(const Loops& loops) {
  loops(vector<8>());
}
template <class Loops>
__attribute__((flatten, target("avx2,avx512f,avx512bw,avx512dq,avx512vl"))) void with_avx512(const Loops& loops) {
  loops(vector<16>());
}
#endif

/// Calls `loops` with the longest vector that this process uses, compiled for its instructions.
template <class Loops>
void with_vectors(const Loops& loops) {
#if defined(__x86_64__)
  using hocket::kernel::instruction_level;
  const instruction_level level = hocket::kernel::current_instruction_level();
  if (level == instruction_level::avx512) return with_avx512(loops);
  if (level == instruction_level::avx2) return with_avx2(loops);
#endif
  loops(vector<4>());
}

}  // namespace gpt
