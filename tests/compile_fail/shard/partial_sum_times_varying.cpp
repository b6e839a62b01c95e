// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a partial sum times data that differ from rank to rank is not a partial sum
//
// Each rank applies a separate dropout mask to a sum that is not reduced.
#include "setting.hpp"

auto dropped(const matrix_on_tp<partial<sum>>& y, const matrix_on_tp<varying>& mask) {
  return apply(multilinear<"tn,tn->tn">(), compute, y, mask);
}
