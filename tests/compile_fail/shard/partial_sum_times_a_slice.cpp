// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a partial sum times data that differ from rank to rank is not a partial sum
//
// A second row-parallel product, of the unreduced output of the first.
#include "setting.hpp"

auto twice(const matrix_on_tp<partial<sum>>& y, const matrix_on_tp<shard<1>>& w) {
  return apply(multilinear<"tk,kn->tn">(), compute, y, w);
}
