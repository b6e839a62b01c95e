// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a tensor that is written to must have a name
//
// The elements are destroyed at the end of the statement.
#include "setting.hpp"

vector_on_tp<invariant> gradient();

void clear() {
  fill(gradient(), [](const auto&) { return 0.0F; });
}
