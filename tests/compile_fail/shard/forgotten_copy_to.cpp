// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: an invariant operand is used beside one that is not
//
// The input of a column-parallel product is equal on all ranks, and its gradient must be, too. Without the
// conversion to replicated, the ranks' contributions to the gradient are not summed.
#include "setting.hpp"

auto column_parallel(const matrix_on_tp<invariant>& x, const matrix_on_tp<shard<1>>& w) {
  return apply(multilinear<"tk,kn->tn">(), compute, x, w);
}
