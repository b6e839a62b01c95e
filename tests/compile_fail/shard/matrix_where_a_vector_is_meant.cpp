// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the rule's subscripts and this call differ in the number of operands, or in the number of dimensions
//
// The bias has two dimensions, its subscripts have one.
#include "setting.hpp"

auto plus_bias(const matrix_on_tp<shard<1>>& x, const matrix_on_tp<shard<0>>& bias) {
  return apply(linear<"tn,n->tn">(), compute, x, bias);
}
