// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the product of two partial sums is not a partial sum
//
// The product of sums is not the sum of products.
#include "setting.hpp"

auto scores(const matrix_on_tp<partial<sum>>& queries, const matrix_on_tp<partial<sum>>& keys) {
  return apply(multilinear<"qd,kd->qk">(), compute, queries, keys);
}
