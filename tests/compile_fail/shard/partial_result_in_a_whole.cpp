// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this tensor has another placement than the one required here
//
// The product of slices is a partial sum, not replicated.
#include "setting.hpp"

void multiply(const matrix_on_tp<shard<1>>& x, const matrix_on_tp<shard<0>>& w) {
  const matrix_on_tp<replicated> y = apply(multilinear<"tk,kn->tn">(), compute, x, w);
}
