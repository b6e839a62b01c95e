// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this tensor has another placement than the one required here
//
// The reduction is missing: a summand is not the sum.
#include "setting.hpp"

#include <utility>

void reduce(vector_on_tp<partial<sum>> x) {
  vector_on_tp<replicated> reduced(std::move(x));
  fill(reduced, [](const auto&) { return 0.0F; });
}
