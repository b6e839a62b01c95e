// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the function needs this dimension whole, and the operand is sharded along it
//
// Each rank would normalise only its own columns.
#include "setting.hpp"

auto probabilities(const matrix_on_tp<shard<1>>& scores) { return apply(nonlinear<"qK->qK">(), compute, scores); }
