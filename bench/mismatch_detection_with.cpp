// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mismatch_detection_loop.hpp"

std::unique_ptr<bench::all_reduce_loop> bench::all_reduce_with_detection() {
  return std::make_unique<loop_of_this_source>();
}
