// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: operands are sharded along different dimensions
//
// Slices of rows are added to slices of columns.
#include "setting.hpp"

auto add(const matrix_on_tp<shard<0>>& x, const matrix_on_tp<shard<1>>& y) {
  return apply(linear<"tn,tn->tn">(), compute, x, y);
}
