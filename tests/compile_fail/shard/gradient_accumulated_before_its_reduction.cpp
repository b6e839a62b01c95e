// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a gradient with another placement can't be added
//
// The gradient of the second microbatch is not reduced yet; that of the first one is.
#include "setting.hpp"

void add(vector_on_tp<invariant>& total, const vector_on_tp<partial<sum>>& gradient) { accumulate(total, gradient); }
