// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: only partial<sum> can be differentiated
//
// Each rank's share of the mean depends on the number of elements on all ranks:
// the sum and the count must be differentiated instead.
#include "setting.hpp"

using gradient = gradient_t<vector_on_tp<partial<mean>>>;
gradient* of_mean = nullptr;
