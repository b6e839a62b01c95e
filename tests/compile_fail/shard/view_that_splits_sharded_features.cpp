// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the function needs this dimension whole, and the operand is sharded along it
//
// [t, features] is viewed as [t, heads, d]: if features are sharded, a rank may have a part of a head.
#include "setting.hpp"

auto heads(const matrix_on_tp<shard<1>>& features) { return apply(nonlinear<"tF->tF">(), compute, features); }
