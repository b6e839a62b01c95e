// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: what is written to is a tensor that has a name
//
// The sum would be lost.
#include "setting.hpp"

vector_on_tp<invariant> total();

void add(const vector_on_tp<invariant>& gradient) { accumulate(total(), gradient); }
