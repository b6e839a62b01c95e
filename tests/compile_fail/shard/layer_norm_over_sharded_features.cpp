// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the function needs this dimension whole, and the operand is sharded along it
//
// The mean and the variance of a slice of the features are not those of all features.
#include "setting.hpp"

auto normalise(const matrix_on_tp<shard<1>>& x, const vector_on_tp<shard<0>>& scale) {
  return apply(nonlinear<"tH,H->tH">(), compute, x, scale);
}
