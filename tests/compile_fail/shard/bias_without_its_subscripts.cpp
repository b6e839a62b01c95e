// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the rule's subscripts have another number of operands, or of dimensions of an operand, than this call
//
// Three operands, and subscripts for two.
#include "setting.hpp"

auto affine(const matrix_on_tp<replicated>& x, const matrix_on_tp<replicated>& w, const vector_on_tp<replicated>& b) {
  return apply(multilinear<"tk,kn->tn">(), compute, x, w, b);
}
