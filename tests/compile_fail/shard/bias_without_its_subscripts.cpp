// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the rule's subscripts and this call differ in the number of operands, or in the number of dimensions
//
// The call has three operands, the subscripts two.
#include "setting.hpp"

auto affine(const matrix_on_tp<replicated>& x, const matrix_on_tp<replicated>& w, const vector_on_tp<replicated>& b) {
  return apply(multilinear<"tk,kn->tn">(), compute, x, w, b);
}
