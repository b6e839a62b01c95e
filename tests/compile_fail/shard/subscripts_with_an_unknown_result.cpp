// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: subscripts must look like
//
// The result has a letter that no operand has.
#include "setting.hpp"

auto product(const matrix_on_tp<shard<1>>& x, const matrix_on_tp<shard<0>>& w) {
  return apply(multilinear<"tk,kn->tm">(), compute, x, w);
}
