// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a non-linear function of partial results is not the partial result of the function
//
// The largest logit, of logits that are still to be summed.
#include "setting.hpp"

auto largest(const matrix_on_tp<partial<sum>>& logits) { return apply(maximum_over<"tv->t">(), compute, logits); }
