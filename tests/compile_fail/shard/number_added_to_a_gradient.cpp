// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: what is added to a tensor is a tensor
//
// To all elements: once in each of the copies, or summands.
#include "setting.hpp"

void penalise(vector_on_tp<partial<sum>>& gradient) { accumulate(gradient, 0.5F); }
