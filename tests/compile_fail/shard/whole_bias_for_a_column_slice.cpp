// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: one operand has a slice of a dimension and another one the whole of it
//
// The bias of a column-parallel product is sharded like its columns.
#include "setting.hpp"

auto plus_bias(const matrix_on_tp<shard<1>>& y, const vector_on_tp<replicated>& b) {
  return apply(linear<"tn,n->tn">(), compute, y, b);
}
