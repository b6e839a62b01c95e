// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: accumulate takes two tensors
//
// The number would be added once in each copy, or in each summand.
#include "setting.hpp"

void penalise(vector_on_tp<partial<sum>>& gradient) { accumulate(gradient, 0.5F); }
