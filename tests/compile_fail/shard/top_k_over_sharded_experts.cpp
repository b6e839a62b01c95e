// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the function needs this dimension whole, and the operand is sharded along it
//
// The best two of one rank's experts are not the best two of all experts.
#include "setting.hpp"

auto route(const matrix_on_tp<shard<1>>& scores) { return apply(nonlinear<"tE->tE">(), compute, scores); }
