// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the gradient and the total have different numbers of dimensions
//
// The gradient of the weight is added to that of the bias.
#include "setting.hpp"

void add(vector_on_tp<invariant>& of_bias, const matrix_on_tp<invariant>& of_weight) { accumulate(of_bias, of_weight); }
