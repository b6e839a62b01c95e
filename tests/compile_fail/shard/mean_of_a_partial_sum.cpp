// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a non-linear function of partial results is not the partial result of the function
//
// The product must be summed before its mean over tokens; otherwise the means would be averaged over ranks.
#include "setting.hpp"

auto mean_of_rows(const matrix_on_tp<partial<sum>>& y) { return apply(mean_over<"tn->n">(), compute, y); }
