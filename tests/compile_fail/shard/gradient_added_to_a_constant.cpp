// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a tensor that is written to must have a name
//
// The total is const.
#include "setting.hpp"

void add(const vector_on_tp<invariant>& total, const vector_on_tp<invariant>& gradient) { accumulate(total, gradient); }
