// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: an invariant operand is used beside one that is not
//
// Sequence parallel: the scale is one, the tokens are cut; without the conversion its gradients are not summed over
// tp.
#include "setting.hpp"

auto scaled(const matrix_on_tp<shard<0>>& x, const vector_on_tp<invariant>& scale) {
  return apply(nonlinear<"tH,H->tH">(), compute, x, scale);
}
