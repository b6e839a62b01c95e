// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a non-linear function of partial results is not the partial result of the function
//
// A gated activation is computed before its operand is reduced.
#include "setting.hpp"

auto gated(const matrix_on_tp<replicated>& gate, const matrix_on_tp<partial<sum>>& up) {
  return apply(nonlinear<"th,th->th">(), compute, gate, up);
}
