// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: an invariant operand is used beside one that is not
//
// A router is one for all experts' ranks, and each rank routes tokens of its own.
#include "setting.hpp"

auto route(const matrix_on_tp<varying>& tokens, const matrix_on_tp<invariant>& router) {
  return apply(multilinear<"th,he->te">(), compute, tokens, router);
}
