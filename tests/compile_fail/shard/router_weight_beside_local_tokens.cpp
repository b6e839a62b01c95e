// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: an invariant operand is used beside one that is not
//
// All experts' ranks use the same router, but each rank routes its own tokens.
#include "setting.hpp"

auto route(const matrix_on_tp<varying>& tokens, const matrix_on_tp<invariant>& router) {
  return apply(multilinear<"th,he->te">(), compute, tokens, router);
}
