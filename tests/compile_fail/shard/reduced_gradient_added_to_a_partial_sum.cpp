// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a gradient with another placement can't be added
//
// The next reduction would count a reduced gradient once per rank.
#include "setting.hpp"

void add(vector_on_tp<partial<sum>>& total, const vector_on_tp<replicated>& gradient) { accumulate(total, gradient); }
