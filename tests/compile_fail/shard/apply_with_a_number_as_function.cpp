// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the function of apply must be callable with the local parts
//
// A number can not be called.
#include "setting.hpp"

auto computed_by_a_number(const matrix_on_tp<shard<0>>& x) { return apply(nonlinear<"th->th">(), 5, x); }
