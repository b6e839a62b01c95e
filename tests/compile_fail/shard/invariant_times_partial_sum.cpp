// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: an invariant operand is used beside one that is not
//
// The gradient of a learned factor before the reduction would be that of one rank's summand.
#include "setting.hpp"

auto scaled(const matrix_on_tp<partial<sum>>& y, const vector_on_tp<invariant>& factor) {
  return apply(multilinear<"tn,n->tn">(), compute, y, factor);
}
