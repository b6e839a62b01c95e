// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a partial sum plus something that is not partial would count that once per rank
//
// The skip connection is added before the all_reduce instead of after it.
#include "setting.hpp"

auto add_residual(const matrix_on_tp<partial<sum>>& block_output, const matrix_on_tp<replicated>& residual) {
  return apply(linear<"th,th->th">(), compute, block_output, residual);
}
