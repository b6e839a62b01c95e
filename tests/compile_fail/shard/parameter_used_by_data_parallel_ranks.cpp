// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: an invariant operand is used beside one that is not
//
// Each rank has a separate batch, so that the gradient of the parameter needs the sum over dp.
#include "setting.hpp"

auto predict(const matrix_of<on<"dp", shard<0>>, on<"tp", replicated>>& batch,
             const matrix_of<on<"dp", invariant>, on<"tp", replicated>>& parameter) {
  return apply(multilinear<"bk,kn->bn">(), compute, batch, parameter);
}
