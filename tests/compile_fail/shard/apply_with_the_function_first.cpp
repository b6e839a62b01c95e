// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the first argument of apply must be a rule that describes the function
//
// The function precedes the rule.
#include "setting.hpp"

auto computed(const vector_on_tp<shard<0>>& x) { return apply(compute, nonlinear<"b->b">(), x); }
