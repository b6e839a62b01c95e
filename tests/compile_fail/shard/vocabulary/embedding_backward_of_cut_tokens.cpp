// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the tokens of a vocabulary-parallel embedding must be invariant or replicated
//
// Each rank would add up only the gradients of its own tokens.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/embedding.hpp>

auto gradient_of(const tensor<int, extents<dynamic>, ranks, on<"dp", replicated>, on<"tp", shard<0>>>& tokens,
                 const matrix_on_tp<shard<0>>& table, const matrix_on_tp<invariant>& g) {
  return vocabulary_parallel_embedding<"tp">::backward(tokens, table, g);
}
