// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: only partial<sum> can be differentiated
// again: the check is a template of the placement, which another case instantiates as well
//
// The loss uses the largest logit as if it were a constant.
#include "setting.hpp"

using gradient = gradient_t<vector_on_tp<partial<maximum>>>;
gradient* of_largest = nullptr;
