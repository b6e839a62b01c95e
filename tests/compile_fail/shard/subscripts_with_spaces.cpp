// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: subscripts must look like
//
// Letters, commas and an arrow, and nothing else.
#include "setting.hpp"

auto product(const matrix_on_tp<shard<1>>& x, const matrix_on_tp<shard<0>>& w) {
  return apply(multilinear<"tk, kn -> tn">(), compute, x, w);
}
