// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the first argument of apply must be a rule
//
// The function precedes the rule.
#include "setting.hpp"

void use(const vector_on_tp<shard<0>>& x) { const auto y = apply(compute, nonlinear<"b->b">(), x); }
