// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: an invariant operand is used beside one that is not
//
// The input of a column-parallel product is the same on all ranks, and so must its gradient be: without the
// conversion to replicated, nobody sums what the ranks add to it.
#include "setting.hpp"

auto column_parallel(const matrix_on_tp<invariant>& x, const matrix_on_tp<shard<1>>& w) {
  return apply(multilinear<"tk,kn->tn">(), compute, x, w);
}
