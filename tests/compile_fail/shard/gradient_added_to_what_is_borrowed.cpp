// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a tensor that is written to must have a name
//
// A borrowed tensor is read-only.
#include "setting.hpp"

void add(const vector_on_tp<invariant>& gradient) {
  auto total = borrow(gradient);
  accumulate(total, gradient);
}
