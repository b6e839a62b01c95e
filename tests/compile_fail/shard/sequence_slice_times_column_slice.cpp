// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: operands are sharded along different dimensions
//
// With sequence parallelism, the all_gather before the column-parallel product is missing.
#include "setting.hpp"

auto product(const matrix_on_tp<shard<0>>& x, const matrix_on_tp<shard<1>>& w) {
  return apply(multilinear<"tk,kn->tn">(), compute, x, w);
}
