// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a non-linear function of partial results is not the partial result of the function
//
// The sum of the squares of summands is not the square of their sum.
#include "setting.hpp"

auto squares(const vector_on_tp<partial<sum>>& gradient) { return apply(sum_over<"n->">(), compute, gradient); }
