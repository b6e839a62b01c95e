// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: what is written to is a tensor that has a name
//
// Its elements are gone at the end of the line.
#include "setting.hpp"

vector_on_tp<invariant> gradient();

void clear() {
  fill(gradient(), [](const auto&) { return 0.0F; });
}
