// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: only partial<sum> can be differentiated
//
// Each rank's share of the mean depends on how many elements all have: the sum and the count are to be
// differentiated.
#include "setting.hpp"

using gradient = gradient_t<vector_on_tp<partial<mean>>>;
gradient* of_mean = nullptr;
