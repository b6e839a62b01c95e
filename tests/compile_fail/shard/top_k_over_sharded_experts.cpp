// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the function needs this dimension whole, and the operand is sharded along it
//
// The best two experts of a rank's own are not the best two of all.
#include "setting.hpp"

auto route(const matrix_on_tp<shard<1>>& scores) { return apply(nonlinear<"tE->tE">(), compute, scores); }
