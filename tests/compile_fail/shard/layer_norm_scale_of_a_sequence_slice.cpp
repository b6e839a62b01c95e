// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: an invariant operand is used beside one that is not
//
// With sequence parallelism, all ranks have the same scale, but slices of the tokens: without the
// conversion, the gradients of the scale are not summed over tp.
#include "setting.hpp"

auto scaled(const matrix_on_tp<shard<0>>& x, const vector_on_tp<invariant>& scale) {
  return apply(nonlinear<"tH,H->tH">(), compute, x, scale);
}
