// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the function needs this dimension whole, and the operand is sharded along it
//
// [t, features] seen as [t, heads, d]: cut along features, a rank may have part of a head.
#include "setting.hpp"

auto heads(const matrix_on_tp<shard<1>>& features) { return apply(nonlinear<"tF->tF">(), compute, features); }
