// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the function reduces a dimension along which its operand is sharded, and no rule specifies how the ranks'
//
// Each rank has only a part of the sum over the vocabulary, whose logarithm is computed.
#include "setting.hpp"

auto normaliser(const matrix_on_tp<shard<1>>& logits, const vector_on_tp<replicated>& largest) {
  return apply(nonlinear<"tv,t->t">(), compute, logits, largest);
}
