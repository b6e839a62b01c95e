// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a partial mean or maximum can't be used in a computation
//
// In a router's balancing loss, the product of the ranks' means is not the product of the means over all tokens.
#include "setting.hpp"

auto balance(const matrix_on_tp<shard<0>>& probabilities, const vector_on_tp<replicated>& share_of_tokens) {
  const auto average = apply(mean_over<"te->e">(), compute, probabilities);
  return apply(multilinear<"e,e->">(), compute, average, share_of_tokens);
}
