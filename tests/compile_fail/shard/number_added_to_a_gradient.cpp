// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: accumulate takes two tensors
//
// To all elements: once in each of the copies, or summands.
#include "setting.hpp"

void penalise(vector_on_tp<partial<sum>>& gradient) { accumulate(gradient, 0.5F); }
