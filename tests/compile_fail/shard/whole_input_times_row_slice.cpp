// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: one operand has a slice of a dimension and another one the whole of it
//
// A row-parallel product needs the same slice of the input.
#include "setting.hpp"

auto row_parallel(const matrix_on_tp<replicated>& x, const matrix_on_tp<shard<0>>& w) {
  return apply(multilinear<"tk,kn->tn">(), compute, x, w);
}
