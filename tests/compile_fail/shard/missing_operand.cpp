// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the rule's subscripts have another number of operands, or of dimensions of an operand, than this call
//
// Subscripts for two operands, and one.
#include "setting.hpp"

auto product(const matrix_on_tp<shard<1>>& x) { return apply(multilinear<"tk,kn->tn">(), compute, x); }
