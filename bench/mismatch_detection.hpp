// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A loop of all_reduce, compiled with and without mismatch detection.
#pragma once

#include <cstddef>
#include <memory>

namespace bench {

/// all_reduce between two ranks, each on its calling thread.
class all_reduce_loop {
 public:
  all_reduce_loop() = default;
  all_reduce_loop(const all_reduce_loop&) = delete;
  all_reduce_loop& operator=(const all_reduce_loop&) = delete;
  virtual ~all_reduce_loop() = default;
  virtual void run(int rank, const float* in, float* out, std::size_t count, int rounds) = 0;
};

std::unique_ptr<all_reduce_loop> all_reduce_with_detection();
std::unique_ptr<all_reduce_loop> all_reduce_without_detection();

}  // namespace bench
