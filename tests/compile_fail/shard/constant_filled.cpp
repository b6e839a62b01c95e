// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: what is written to is a tensor that has a name
//
// It can only be read.
#include "setting.hpp"

void clear(const vector_on_tp<invariant>& x) {
  fill(x, [](const auto&) { return 0.0F; });
}
