// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: dimensions with the same letter in the rule's subscripts have different extents
//
// The matrix is [outputs, inputs] instead of [inputs, outputs].
#include "setting.hpp"

auto product(const tensor<float, extents<dynamic, 512>, ranks, elsewhere<replicated>>& x,
             const tensor<float, extents<2048, 512>, ranks, elsewhere<replicated>>& w) {
  return apply(multilinear<"tk,kn->tn">(), compute, x, w);
}
