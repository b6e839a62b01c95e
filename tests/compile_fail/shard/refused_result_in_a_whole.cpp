// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a non-linear function of partial results is not the partial result
//
// The placement of an invalid result is unknown, so that there is no second error for the variable.
#include "setting.hpp"

void compute_of(const vector_on_tp<partial<sum>>& x) {
  const vector_on_tp<replicated> y = apply(nonlinear<"h->h">(), compute, x);
}
