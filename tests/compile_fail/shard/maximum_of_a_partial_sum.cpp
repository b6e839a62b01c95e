// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a non-linear function of partial results is not the partial result of the function
//
// The logits must be summed before their maximum is computed.
#include "setting.hpp"

auto largest(const matrix_on_tp<partial<sum>>& logits) { return apply(maximum_over<"tv->t">(), compute, logits); }
