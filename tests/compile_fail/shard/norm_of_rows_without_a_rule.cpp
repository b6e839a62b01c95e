// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the function reduces a dimension along which its operand is sharded, and no rule specifies how the ranks'
//
// The rows are sharded: a sum of squares may be partial, but its root may not.
#include "setting.hpp"

auto norm_of_rows(const matrix_on_tp<shard<1>>& x) { return apply(nonlinear<"th->t">(), compute, x); }
