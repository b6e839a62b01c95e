// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the rule's subscripts and this call differ in the number of operands, or in the number of dimensions
//
// The subscripts have two operands, the call one.
#include "setting.hpp"

auto product(const matrix_on_tp<shard<1>>& x) { return apply(multilinear<"tk,kn->tn">(), compute, x); }
