// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#define HOCKET_MISMATCH_DETECTION 0

#include "mismatch_detection_loop.hpp"

std::unique_ptr<bench::all_reduce_loop> bench::all_reduce_without_detection() {
  return std::make_unique<loop_of_this_source>();
}
