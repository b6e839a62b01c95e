// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a varying operand is used beside a slice
//
// Part of one operand is a slice, and the other one's is anybody's guess.
#include "setting.hpp"

auto add(const matrix_on_tp<shard<0>>& x, const matrix_on_tp<varying>& y) {
  return apply(linear<"th,th->th">(), compute, x, y);
}
