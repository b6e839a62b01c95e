// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a tensor that is written to must have a name
//
// A borrowed tensor is read-only.
#include "setting.hpp"

void clear(const vector_on_tp<invariant>& x) {
  auto borrowed = borrow(x);
  fill(borrowed, [](const auto&) { return 0.0F; });
}
