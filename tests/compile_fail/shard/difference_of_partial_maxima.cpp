// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a partial mean or maximum can't be used in a computation
//
// Logits minus their largest, which is known of each rank's columns only.
#include "setting.hpp"

auto margin(const vector_on_tp<partial<maximum>>& first, const vector_on_tp<partial<maximum>>& second) {
  return apply(linear<"t,t->t">(), compute, first, second);
}
