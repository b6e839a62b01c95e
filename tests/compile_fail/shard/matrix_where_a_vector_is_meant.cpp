// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the rule's subscripts have another number of operands, or of dimensions of an operand, than this call
//
// The bias has two dimensions, its subscripts one.
#include "setting.hpp"

auto plus_bias(const matrix_on_tp<shard<1>>& x, const matrix_on_tp<shard<0>>& bias) {
  return apply(linear<"tn,n->tn">(), compute, x, bias);
}
