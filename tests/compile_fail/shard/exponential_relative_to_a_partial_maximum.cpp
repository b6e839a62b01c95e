// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a non-linear function of partial results is not the partial result of the function
//
// The maximum over the vocabulary must be reduced before the exponentials.
#include "setting.hpp"

auto exponentials(const matrix_on_tp<shard<1>>& logits) {
  const auto largest = apply(maximum_over<"tv->t">(), compute, logits);
  return apply(nonlinear<"tv,t->tv">(), compute, logits, largest);
}
