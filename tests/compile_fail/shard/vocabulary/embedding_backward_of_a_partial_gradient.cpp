// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the gradient of a vocabulary-parallel embedding must be placed like the output
//
// The gradient of an invariant output is invariant.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/embedding.hpp>

auto gradient_of(const tensor<int, extents<dynamic>, ranks, on<"dp", replicated>, on<"tp", invariant>>& tokens,
                 const matrix_on_tp<shard<0>>& table, const matrix_on_tp<partial<sum>>& g) {
  return vocabulary_parallel_embedding<"tp">::backward(tokens, table, g);
}
