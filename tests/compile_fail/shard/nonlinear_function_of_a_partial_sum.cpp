// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a non-linear function of partial results is not the partial result of the function
//
// The all_reduce between the product and the activation is missing.
#include "setting.hpp"

auto feed_forward(const matrix_on_tp<shard<1>>& x, const matrix_on_tp<shard<0>>& w) {
  const auto y = apply(multilinear<"bk,kn->bn">(), compute, x, w);
  return apply(nonlinear<"bn->bn">(), compute, y);
}
