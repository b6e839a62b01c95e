// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a partial mean or maximum can't be used in a computation
//
// Each rank has only the maxima of its own columns.
#include "setting.hpp"

auto margin(const vector_on_tp<partial<maximum>>& first, const vector_on_tp<partial<maximum>>& second) {
  return apply(linear<"t,t->t">(), compute, first, second);
}
