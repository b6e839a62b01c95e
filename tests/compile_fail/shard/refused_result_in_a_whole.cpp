// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a non-linear function of partial results is not the partial result
//
// How the result of what is refused would be placed is not known: nothing is said of the variable.
#include "setting.hpp"

void compute_of(const vector_on_tp<partial<sum>>& x) {
  const vector_on_tp<replicated> y = apply(nonlinear<"h->h">(), compute, x);
}
