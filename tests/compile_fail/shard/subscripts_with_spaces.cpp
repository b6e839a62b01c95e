// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: subscripts must look like
//
// Subscripts contain only letters, commas and an arrow.
#include "setting.hpp"

auto product(const matrix_on_tp<shard<1>>& x, const matrix_on_tp<shard<0>>& w) {
  return apply(multilinear<"tk, kn -> tn">(), compute, x, w);
}
