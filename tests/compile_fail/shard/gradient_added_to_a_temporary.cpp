// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a tensor that is written to must have a name
//
// The sum would be lost.
#include "setting.hpp"

vector_on_tp<invariant> total();

void add(const vector_on_tp<invariant>& gradient) { accumulate(total(), gradient); }
