// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the first argument of apply is a rule that says what the function is
//
// The other way round.
#include "setting.hpp"

auto computed(const vector_on_tp<shard<0>>& x) { return apply(compute, nonlinear<"b->b">(), x); }
