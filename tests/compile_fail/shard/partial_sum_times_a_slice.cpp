// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a partial sum times data that differ from rank to rank is not a partial sum
//
// The unreduced output of a row-parallel product is the input of a second one.
#include "setting.hpp"

auto twice(const matrix_on_tp<partial<sum>>& y, const matrix_on_tp<shard<1>>& w) {
  return apply(multilinear<"tk,kn->tn">(), compute, y, w);
}
