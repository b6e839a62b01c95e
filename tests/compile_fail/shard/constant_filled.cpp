// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a tensor that is written to must have a name
//
// The tensor is const.
#include "setting.hpp"

void clear(const vector_on_tp<invariant>& x) {
  fill(x, [](const auto&) { return 0.0F; });
}
