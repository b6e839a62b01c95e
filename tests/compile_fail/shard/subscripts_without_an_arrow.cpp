// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: subscripts must look like
//
// numpy infers the result; a rule does not.
#include "setting.hpp"

auto product(const matrix_on_tp<shard<1>>& x, const matrix_on_tp<shard<0>>& w) {
  return apply(multilinear<"tk,kn">(), compute, x, w);
}
