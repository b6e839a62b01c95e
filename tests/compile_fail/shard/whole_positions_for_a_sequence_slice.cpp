// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: one operand has a slice of a dimension and another one the whole of it
//
// The angles are those of all positions, the keys those of some: row t of the angles is not row t of the slice.
#include "setting.hpp"

auto rotate(const matrix_on_tp<shard<0>>& keys, const matrix_on_tp<replicated>& angles) {
  return apply(nonlinear<"td,td->td">(), compute, keys, angles);
}
