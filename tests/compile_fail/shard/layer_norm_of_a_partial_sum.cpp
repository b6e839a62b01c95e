// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a non-linear function of partial results is not the partial result of the function
//
// The block ends with a row-parallel product, which must be reduced before it is normalised.
#include "setting.hpp"

auto normalise(const matrix_on_tp<partial<sum>>& block_output) {
  return apply(nonlinear<"tH->tH">(), compute, block_output);
}
