// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a non-linear function of partial results is not the partial result of the function
//
// If the features of heads are sharded, scores are partial sums, and their softmax is not a partial sum.
#include "setting.hpp"

auto attend(const matrix_on_tp<shard<1>>& queries, const matrix_on_tp<shard<1>>& keys) {
  const auto scores = apply(multilinear<"qd,kd->qk">(), compute, queries, keys);
  return apply(nonlinear<"qK->qK">(), compute, scores);
}
