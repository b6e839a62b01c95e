// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a partial sum plus something that is not partial would count that once per rank
//
// Each rank would add the bias, and the all_reduce would count it once per rank.
#include "setting.hpp"

auto row_parallel(const matrix_on_tp<shard<1>>& x, const matrix_on_tp<shard<0>>& w, const vector_on_tp<replicated>& b) {
  const auto y = apply(multilinear<"tk,kn->tn">(), compute, x, w);
  return apply(linear<"tn,n->tn">(), compute, y, b);
}
