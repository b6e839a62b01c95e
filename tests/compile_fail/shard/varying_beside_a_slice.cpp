// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a varying operand is used beside a slice
//
// One operand is a slice; it is unknown which part the other operand represents.
#include "setting.hpp"

auto add(const matrix_on_tp<shard<0>>& x, const matrix_on_tp<varying>& y) {
  return apply(linear<"th,th->th">(), compute, x, y);
}
