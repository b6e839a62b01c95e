// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a partial sum plus something that is not partial would count that once per rank
//
// The loss is summed over the slices of the tokens, so that each rank would add the whole penalty once.
#include "setting.hpp"

auto loss(const vector_on_tp<shard<0>>& of_tokens,
          const tensor<float, extents<>, ranks, elsewhere<replicated>>& penalty) {
  return apply(linear<"t,->">(), compute, of_tokens, penalty);
}
